/**
 * Replays golden conversations (protocol/examples/*.jsonl) with the extension's own session against a server that says
 * what is written: `node test/replay.mjs FILE…`. A line for each file; exit 1 where the session did not understand one.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const require = createRequire(import.meta.url);
const { createMessageConnection, StreamMessageReader, StreamMessageWriter } = require('vscode-jsonrpc/node');
const home = fileURLToPath(new URL('../src', import.meta.url));
const entry = { contents: "export * from './session'; export * from './mirror';", resolveDir: home, loader: 'ts' };
const bundled = buildSync({ stdin: entry, bundle: true, format: 'esm', platform: 'node', write: false }).outputFiles[0].text;
const { Session, Mirror } = await import(`data:text/javascript;base64,${Buffer.from(bundled).toString('base64')}`);

/** Concrete values for placeholders; the same name is the same value throughout. `...` says nothing more. */
function concrete(value, values) {
  if (typeof value === 'string' && value.startsWith('$') && !value.startsWith('$/')) {
    const name = value.slice(1);
    const plain = { any: {}, integer: 1, number: 1, string: 'text', time: Date.now() };
    if (name in plain) return plain[name];
    const isRev = !['graph', 'store', 'workspace', 'subscription', 'cursor', 'ask', 'hash'].some((word) => name.includes(word));
    if (!(name in values)) values[name] = isRev ? Object.keys(values).length + 10 : `${name}-1`;
    return values[name];
  }
  if (Array.isArray(value)) return value.filter((item) => item !== '...').map((item) => concrete(item, values));
  if (value && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).filter(([key]) => key !== '...').map(([key, item]) => [key.startsWith('$') && !key.startsWith('$/') ? concrete(key, values) : key, concrete(item, values)]));
  }
  return value;
}

/** A change whose revs are left open goes on from what was told last; what is left out is as little as there can be. */
function chained(change, template, held) {
  const from = template.from === '$integer' ? (held.get(change.graph) ?? 0) : (change.from ?? 0);
  const rev = template.rev === '$integer' ? from + 1 : (change.rev ?? from + 1);
  held.set(change.graph, rev);
  return { ...('...' in template && change.full ? { header: {} } : {}), ...change, from, rev };
}

/** One connection: what the session sends is kept, what the server says is written by hand. */
function connected(mirror, told) {
  const [toServer, toClient] = [new PassThrough(), new PassThrough()];
  const connection = createMessageConnection(new StreamMessageReader(toClient), new StreamMessageWriter(toServer));
  const writer = new StreamMessageWriter(toClient);
  const sent = [];
  let arrived = () => undefined;
  new StreamMessageReader(toServer).listen((message) => (sent.push(message), arrived()));
  connection.listen();
  const listener = Object.fromEntries(['changed', 'activity', 'output', 'stopping'].map((name) => [name, (value) => told.push([name, value])]));
  const session = new Session(connection, mirror, { ...listener, asks: (opened, closed) => told.push(['asks', { opened, closed }]) });
  const next = async () => {
    while (!sent.length) await new Promise((resolve) => (arrived = resolve));
    return sent.shift();
  };
  return { session, next, say: (message) => writer.write({ jsonrpc: '2.0', ...message }), end: () => (session.dispose(), connection.dispose()) };
}

/** What every session says first; the conversation's own hello comes after it, as a later one may. */
async function opened(line) {
  const opening = line.session.open({ client: { name: 'replay', version: '1' } });
  const answers = { 'graphd/hello': {}, 'workgraph/subscribe': { subscription: 's-0', store: 'store-1', graphs: [] }, 'workgraph/asks': [] };
  for (const method of Object.keys(answers)) {
    const asked = await line.next();
    assert.equal(asked.method, method);
    await line.say({ id: asked.id, result: answers[method] });
  }
  await opening;
}

async function replay(path) {
  const rows = readFileSync(path, 'utf8').split('\n').filter(Boolean).map((row) => JSON.parse(row)).filter((row) => 'from' in row);
  const [values, told, waiting, mirror] = [{ store: 'store-1' }, [], new Map(), new Mirror()];
  const [wanted, held] = [[], new Map()];
  let line = connected(mirror, told);
  await opened(line);
  for (const row of rows) {
    if (row.reconnect) {
      line.end();
      line = connected(mirror, told);
      await opened(line);
    } else if (row.from === 'client') {
      const { id, method, params } = concrete(row.message, values);
      for (const [graph, rev] of Object.entries(params?.since ?? {})) {
        mirror.start('store-1', [{ operation: 'known', graph, from: 0, rev, header: {}, full: true }]);
      }
      const answer = line.session.request(method, params ?? {}).then((result) => ({ result }), (error) => ({ error }));
      waiting.set(id, { method, answer, number: (await line.next()).id });
    } else {
      const message = concrete(row.message, values);
      const asked = waiting.get(message.id);
      if (message.method === 'workgraph/changed') message.params = chained(message.params, row.message.params, held);
      if (asked?.method === 'workgraph/subscribe') message.result?.graphs.forEach((value, index) => (message.result.graphs[index] = chained(value, row.message.result.graphs[index], held)));
      await line.say(asked ? { ...message, id: asked.number } : message);
      if (!asked) {
        wanted.push(message);
        continue;
      }
      const { result, error } = await asked.answer;
      assert.deepEqual(result, message.result);
      assert.equal(error?.code, message.error?.code);
      assert.deepEqual(error?.data, message.error?.data);
      if (asked.method === 'workgraph/subscribe' && result) mirror.start(result.store, result.graphs);
    }
  }
  await new Promise((resolve) => setTimeout(resolve, 20)); // notifications are dispatched one a turn
  const notices = wanted.map(({ method }) => method.split('/')[1]);
  assert.deepEqual(told.map(([name]) => name).filter((name) => name !== 'asks'), notices.filter((name) => name !== 'asks'));
  const last = wanted.filter(({ method }) => method === 'workgraph/changed').at(-1)?.params;
  assert.equal(last && mirror.graphs.get(last.graph)?.rev, last && !last.cleared ? last.rev : undefined);
  line.end();
  return `${rows.length} lines, ${wanted.length} notifications`;
}

/** A change that does not follow on what is held: the session asks for the whole, without `since`. */
async function gap() {
  const [told, mirror] = [[], new Mirror()];
  const line = connected(mirror, told);
  await opened(line);
  await line.say({ method: 'workgraph/changed', params: { operation: 'x', graph: 'g', from: 5, rev: 6, header: {} } });
  const left = await line.next();
  assert.deepEqual([left.method, left.params], ['workgraph/unsubscribe', { subscription: 's-0' }]);
  await line.say({ id: left.id, result: { subscription: 's-0' } });
  const asked = await line.next();
  assert.deepEqual([asked.method, asked.params], ['workgraph/subscribe', { activity: true }]);
  await line.say({ id: asked.id, result: { subscription: 's-1', store: 'store-1', graphs: [{ operation: 'x', graph: 'g', from: 0, rev: 6, header: {}, full: true }] } });
  while (!told.some(([name]) => name === 'changed')) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(mirror.revs(), { g: 6 });
  line.end();
  return 'a gap is closed';
}

let failures = 0;
for (const path of ['gap', ...process.argv.slice(2)]) {
  try {
    console.log(`ok ${path.split('/').at(-1)}: ${await (path === 'gap' ? gap() : replay(path))}`);
  } catch (trouble) {
    failures += 1;
    console.log(`not ok ${path.split('/').at(-1)}: ${trouble.stack}`);
  }
}
process.exit(failures ? 1 : 0);
