/** Runs inside VS Code's extension host: what the extension does to the API, step by step in one window. */
const assert = require('node:assert/strict');
const { mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const vscode = require('vscode');

const FLOW = `title: In the host
nodes:
  - { id: one, run: echo 1 }
  - { id: two, needs: [one], run: until test -e go; do sleep 0.1; done }
  - { id: three, needs: [twoo], run: echo 3 }
`;

async function until(look, what) {
  for (let turn = 0; turn < 600; turn += 1) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`not within 30 s: ${what}`);
}

async function run() {
  const folder = vscode.workspace.workspaceFolders[0].uri.fsPath;
  const extension = vscode.extensions.getExtension('workgraphd.graphd');

  // nothing is loaded before it is used
  assert.equal(extension.isActive, false, 'it is asleep in a folder without workflows');
  await vscode.commands.executeCommand('graphd.graphs.focus');
  await until(() => extension.isActive, 'the view wakes it');
  const { link, tree } = extension.exports;
  await until(() => link.state === 'ready', 'the view connects it');

  // a workflow file has diagnostics, lenses, completion
  mkdirSync(join(folder, '.agents', 'workflows'), { recursive: true });
  const uri = vscode.Uri.file(join(folder, '.agents', 'workflows', 'host.yaml'));
  writeFileSync(uri.fsPath, FLOW);
  const document = await vscode.workspace.openTextDocument(uri);
  const editor = await vscode.window.showTextDocument(document);
  const [finding] = await until(() => vscode.languages.getDiagnostics(uri).length && vscode.languages.getDiagnostics(uri), 'a diagnostic');
  assert.equal(document.getText(finding.range), 'twoo');
  const actions = await vscode.commands.executeCommand('vscode.executeCodeActionProvider', uri, finding.range);
  assert.ok(actions.some((action) => action.isPreferred && action.edit), 'a quick fix is preferred');
  await editor.edit((edit) => edit.replace(finding.range, 'two'));
  await until(() => vscode.languages.getDiagnostics(uri).length === 0, 'no diagnostic');
  const lenses = await vscode.commands.executeCommand('vscode.executeCodeLensProvider', uri);
  assert.deepEqual(lenses.map((lens) => lens.command.title), ['Run']);

  // a run saves first, and answers with its graph
  assert.equal(document.isDirty, true);
  const graph = await vscode.commands.executeCommand(lenses[0].command.command, ...lenses[0].command.arguments);
  assert.equal(document.isDirty, false);
  assert.equal(link.mirror.graphs.get(graph)?.header.title ?? 'In the host', 'In the host');

  // rows keep their object, and only what changed is drawn again
  const [root] = await until(async () => { const rows = await tree.getChildren(); return rows.length && rows; }, 'a graph');
  assert.equal(root.id, graph);
  const rows = await tree.getChildren(root);
  assert.deepEqual(rows.map((row) => row.id), ['one', 'two', 'three'].map((slug) => `${graph}/${slug}`));
  await until(() => tree.getTreeItem(rows[1]).contextValue.startsWith('node.running;'), 'two runs');
  const fired = [];
  const listening = tree.onDidChangeTreeData((row) => fired.push(row));
  writeFileSync(join(folder, 'go'), '');
  await until(() => tree.getTreeItem(rows[2]).contextValue.startsWith('node.achieved;'), 'three is achieved');
  listening.dispose();
  assert.ok(fired.length && fired.every((row) => row !== undefined), 'never the whole tree');
  assert.ok(fired.includes(rows[2]) && !fired.includes(rows[0]), 'what did not change is not drawn again');
  assert.deepEqual(await tree.getChildren(root), rows);
  const hints = await vscode.commands.executeCommand('vscode.executeInlayHintProvider', uri, new vscode.Range(0, 0, 9, 0));
  assert.equal(hints.length, 3);

  // output is a read-only document of ours
  await vscode.commands.executeCommand('graphd.openOutput', { graph, node: 'one' });
  const shown = await until(() => vscode.workspace.textDocuments.find((one) => one.uri.scheme === 'graphd'), 'the output');
  assert.equal(shown.getText(), '1\n');

  // a refusal is said, not thrown at whoever called
  assert.equal(await vscode.commands.executeCommand('graphd.pause', { graph }), undefined);

  // a restart goes on from the revs that were held
  const before = link.mirror.revs();
  await vscode.commands.executeCommand('graphd.restart');
  await until(() => link.state === 'ready', 'it is back');
  assert.deepEqual(link.mirror.revs(), before);
  assert.equal((await tree.getChildren())[0], root);
}

module.exports = { run };
