/** The page of the graph panel: draws a picture, moves only what changed, is walked by keyboard. */

import type { Picture, PlacedNode, TreeRow } from 'graphd-protocol';

interface Told {
  graph: string;
  picture?: Picture;
  row?: TreeRow;
  asks: string[];
  words: Record<string, string>;
  trouble?: string;
}

declare function acquireVsCodeApi(): { postMessage(message: unknown): void; setState(state: unknown): void };

const SVG = 'http://www.w3.org/2000/svg';
const MARGIN = 12;
const editor = acquireVsCodeApi();
let shape = '';
let drawn: Told | undefined;
let focused = '';

function element<T extends keyof SVGElementTagNameMap>(name: T, facts: Record<string, string | number>, ...below: Node[]): SVGElementTagNameMap[T] {
  const made = document.createElementNS(SVG, name);
  Object.entries(facts).forEach(([key, value]) => made.setAttribute(key, String(value)));
  made.append(...below);
  return made;
}

function byId(id: string): HTMLElement {
  return document.getElementById(id) as HTMLElement;
}

function filled(text: string | undefined, ...values: unknown[]): string {
  return (text ?? '').replace(/\{(\d)\}/g, (_, place: string) => String(values[Number(place)]));
}

/** What makes two pictures the same drawing: everything but the states. */
function shapeOf(picture: Picture): string {
  return JSON.stringify([picture.width, picture.height, picture.nodes.map(({ id, x, y, w, h, label }) => [id, x, y, w, h, label]), picture.edges]);
}

function draw(told: Told): void {
  const before = drawn;
  byId('trouble').textContent = told.trouble ?? '';
  document.body.classList.toggle('stale', Boolean(told.trouble));
  if (!told.picture) {
    return;
  }
  drawn = told;
  drawHeader(told);
  const shapeNow = shapeOf(told.picture);
  if (shapeNow !== shape) {
    shape = shapeNow;
    byId('main').replaceChildren(svgOf(told.picture, told.words['picture'] ?? ''));
  }
  told.picture.nodes.forEach((node) => show(node, told));
  byId('main').dataset['rev'] = String(told.picture.rev);
  byId('hidden').textContent = told.picture.hidden ? filled(told.words['hidden'], told.picture.hidden) : '';
  byId('twin-title').textContent = told.words['asText'] ?? '';
  byId('text').textContent = told.picture.text;
  byId('said').textContent = saidOf(before?.picture, told);
}

function drawHeader({ row, graph }: Told): void {
  const title = Object.assign(document.createElement('h1'), { textContent: row?.label ?? graph });
  const said = Object.assign(document.createElement('span'), { textContent: row?.description ?? '', className: `status ${row?.state ?? ''}` });
  const buttons = (row?.commands ?? [])
    .filter((command) => command.enabled)
    .map((command) => {
      const button = Object.assign(document.createElement('button'), { textContent: command.title, type: 'button' });
      button.addEventListener('click', () => editor.postMessage({ command: command.command, argument: command.arguments[0] }));
      return button;
    });
  const had = document.activeElement instanceof HTMLButtonElement ? document.activeElement.textContent : undefined;
  const actions = Object.assign(document.createElement('div'), { className: 'actions' });
  actions.append(...buttons);
  byId('header').replaceChildren(title, said, actions);
  buttons.find((button) => button.textContent === had)?.focus();
}

function svgOf(picture: Picture, label: string): SVGSVGElement {
  const edges = picture.edges.map((edge) => element('path', { class: 'edge', d: pathOf(edge.points), 'data-from': edge.from, 'data-to': edge.to, 'marker-end': 'url(#tip)' }));
  const nodes = picture.nodes.map(nodeOf);
  const width = picture.width + 2 * MARGIN;
  const height = picture.height + 2 * MARGIN;
  const tip = element('marker', { id: 'tip', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: 'userSpaceOnUse', orient: 'auto' }, element('path', { class: 'tip', d: 'M0,0.5 L7.5,4 L0,7.5 z' }));
  return element('svg', { width, height, viewBox: `${-MARGIN} ${-MARGIN} ${width} ${height}`, role: 'group', 'aria-label': label }, element('defs', {}, tip), ...edges, ...nodes);
}

/** Straight down out of a box and into the next one, bent in between. */
function pathOf(points: [number, number][]): string {
  return points.reduce((path, [x, y], index) => {
    const last = points[index - 1];
    if (!last) {
      return `M${x},${y}`;
    }
    const middle = (last[1] + y) / 2;
    return `${path} C${last[0]},${middle} ${x},${middle} ${x},${y}`;
  }, '');
}

function nodeOf({ id, x, y, w, h, label }: PlacedNode): SVGGElement {
  const box = element('rect', { width: w, height: h, rx: 5 });
  const bar = element('rect', { class: 'bar', width: 4, height: h, rx: 2 });
  const mark = element('text', { class: 'mark', x: 16, y: h / 2 });
  const name = element('text', { class: 'name', x: 30, y: h / 2 });
  name.textContent = label;
  const made = element('g', { transform: `translate(${x},${y})`, 'data-node': id, role: 'button', tabindex: -1 }, box, bar, mark, name);
  made.addEventListener('click', () => opened(id));
  made.addEventListener('focus', () => moved(id));
  return made;
}

const MARKS: Record<string, string> = { waiting: '○', ready: '◔', running: '▶', achieved: '✓', failed: '✗', blocked: '▲', skipped: '»', cancelled: '⊘' };

/** Only classes and words move: the drawing stays where it is. */
function show(node: PlacedNode, told: Told): void {
  const group = groupOf(node.id);
  if (!group) {
    return;
  }
  const isAsking = told.asks.includes(node.id);
  group.setAttribute('class', `node ${node.state}${isAsking ? ' asks' : ''}`);
  group.setAttribute('aria-label', [node.label, node.state, ...(isAsking ? [told.words['asks']] : [])].join(', '));
  const mark = group.querySelector('.mark');
  if (mark) {
    mark.textContent = isAsking ? '?' : (MARKS[node.state] ?? '');
  }
  const isFirst = node === told.picture?.nodes[0];
  group.setAttribute('tabindex', (groupOf(focused) ? node.id === focused : isFirst) ? '0' : '-1');
}

function saidOf(before: Picture | undefined, told: Told): string {
  const was = new Map(before?.nodes.map((node) => [node.id, node.state]));
  const moved = (told.picture?.nodes ?? []).filter((node) => was.has(node.id) && was.get(node.id) !== node.state);
  return moved.map((node) => filled(told.words['now'], node.label, node.state)).join('. ');
}

// ---- keyboard --------------------------------------------------------------------------------------------------------

function groupOf(id: string): SVGGElement | undefined {
  return [...document.querySelectorAll<SVGGElement>('g[data-node]')].find((group) => group.dataset['node'] === id);
}

function opened(id: string): void {
  editor.postMessage({ command: drawn?.asks.includes(id) ? 'graphd.answer' : 'graphd.openOutput', argument: { node: id } });
}

function moved(id: string): void {
  focused = id;
  document.querySelectorAll<SVGGElement>('g[data-node]').forEach((group) => group.setAttribute('tabindex', group.dataset['node'] === id ? '0' : '-1'));
  document.querySelectorAll<SVGPathElement>('.edge').forEach((edge) => edge.classList.toggle('near', edge.dataset['from'] === id || edge.dataset['to'] === id));
}

/** The node that an arrow key leads to: beside it in its layer, or the nearest one of the next layer. */
function neighbour(id: string, key: string): string | undefined {
  const { layers, nodes } = drawn?.picture ?? { layers: [], nodes: [] };
  const layer = layers.findIndex((slugs) => slugs.includes(id));
  const place = layers[layer]?.indexOf(id) ?? -1;
  if (key === 'ArrowLeft' || key === 'ArrowRight') {
    return layers[layer]?.[place + (key === 'ArrowLeft' ? -1 : 1)];
  }
  const middle = (slug: string): number => nodes.filter((node) => node.id === slug).map((node) => node.x + node.w / 2)[0] ?? 0;
  const next = layers[layer + (key === 'ArrowUp' ? -1 : 1)] ?? [];
  return [...next].sort((a, b) => Math.abs(middle(a) - middle(id)) - Math.abs(middle(b) - middle(id)))[0];
}

document.addEventListener('keydown', (event) => {
  const id = document.activeElement instanceof SVGElement ? document.activeElement.dataset['node'] : undefined;
  if (!id) {
    return;
  }
  if (event.key === 'Enter' || event.key === ' ') {
    opened(id);
    event.preventDefault();
  } else if (event.key.startsWith('Arrow')) {
    groupOf(neighbour(id, event.key) ?? id)?.focus();
    event.preventDefault();
  }
});

window.addEventListener('message', (event: MessageEvent<Told>) => {
  editor.setState({ graph: event.data.graph });
  draw(event.data);
});
editor.postMessage({ isReady: true });
