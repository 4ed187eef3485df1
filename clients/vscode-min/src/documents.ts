/** Output, transcript and diff of attempts as read-only documents that follow while there is something to follow. */

import * as vscode from 'vscode';
import type { ObservedItem } from 'graphd-protocol';
import type { Link } from './link';
import { Pace } from './pace';
import { isRefused, messageOf } from './refusals';
import type { Session } from './session';

export const SCHEME = 'graphd';
export type Kind = 'output' | 'transcript' | 'diff';
const PACE_MS = 120;
const PAGE = 50;
const SLICE_BYTES = 1024 * 1024;
const KEPT_CHARS = 2_000_000;
const ENDINGS: Record<Kind, string> = { output: 'txt', transcript: 'md', diff: 'diff' };

interface Place {
  kind: Kind;
  graph: string;
  node: string;
  attempt: number;
}

/** The address of a document; its last part is what the tab shows. */
export function uriOf({ kind, graph, node, attempt }: Place): vscode.Uri {
  const name = `${node}@${attempt}${kind === 'transcript' ? ' transcript' : ''}.${ENDINGS[kind]}`;
  return vscode.Uri.from({ scheme: SCHEME, path: `/${kind}/${graph}/${name}`, query: JSON.stringify([kind, graph, node, attempt]) });
}

export class Documents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly fired = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.fired.event;
  private readonly feeds = new Map<string, Feed>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly link: Link) {
    this.subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.workspace.onDidCloseTextDocument((document) => this.close(document.uri)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.feeds.get(document.uri.toString())?.scroll(document)),
      link.onOutput((chunk) => this.stir(chunk.graph, chunk.node)),
      link.onChanged((value) => value.nodes?.forEach((node) => this.stir(value.graph, node.slug))),
      link.onState((state) => state === 'ready' && this.feeds.forEach((feed) => feed.begin())),
    ];
  }

  /** Show a document beside what is open; an earlier one of the same address is shown again. */
  async open(place: Place, language?: string): Promise<void> {
    let document = await vscode.workspace.openTextDocument(uriOf(place));
    if (language && document.languageId !== language) {
      document = await vscode.languages.setTextDocumentLanguage(document, language);
    }
    await vscode.window.showTextDocument(document, { preview: true });
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const key = uri.toString();
    let feed = this.feeds.get(key);
    if (!feed) {
      const [kind, graph, node, attempt] = JSON.parse(uri.query) as [Kind, string, string, number];
      feed = new Feed(this.link, { kind, graph, node, attempt }, uri, () => this.fired.fire(uri));
      this.feeds.set(key, feed);
      await feed.first();
    }
    return feed.text;
  }

  dispose(): void {
    this.feeds.forEach((feed) => feed.dispose());
    this.subscriptions.forEach((item) => item.dispose());
  }

  private close(uri: vscode.Uri): void {
    this.feeds.get(uri.toString())?.dispose();
    this.feeds.delete(uri.toString());
  }

  private stir(graph: string, node: string): void {
    this.feeds.forEach((feed) => feed.place.graph === graph && feed.place.node === node && feed.stir());
  }
}

/** One document that is open. */
class Feed {
  text = '';
  private cursor: string | undefined;
  private isLive = true;
  private isFollowed = true;
  private subscription: string | undefined;
  private readonly pace: Pace;

  constructor(
    private readonly link: Link,
    readonly place: Place,
    private readonly uri: vscode.Uri,
    private readonly changed: () => void,
  ) {
    this.pace = new Pace(() => this.renew(), PACE_MS);
  }

  /** What there is to show at first; trouble is shown in its place. */
  async first(): Promise<void> {
    try {
      const session = await this.link.ready();
      await this.read(session);
      await this.subscribe(session);
    } catch (trouble) {
      this.text = messageOf(trouble);
    }
  }

  /** A new connection: what was subscribed on the old one is gone. */
  begin(): void {
    if (this.isLive && this.link.session) {
      void this.subscribe(this.link.session).catch(() => undefined);
      this.pace.touch();
    }
  }

  stir(): void {
    if (this.isLive) {
      this.pace.touch();
    }
  }

  /** Keep the end in sight where it was in sight before. */
  scroll(document: vscode.TextDocument): void {
    const end = document.lineAt(document.lineCount - 1).range.end;
    if (this.isFollowed) {
      vscode.window.visibleTextEditors.filter((one) => one.document === document).forEach((one) => one.revealRange(new vscode.Range(end, end)));
    }
  }

  dispose(): void {
    this.isLive = false;
    this.pace.dispose();
    const { subscription } = this;
    if (subscription) {
      this.link.session?.request('workgraph/unsubscribe', { subscription }).catch(() => undefined);
    }
  }

  /** Woken by what an attempt prints; the values come with `observe`. */
  private async subscribe(session: Session): Promise<void> {
    if (this.isLive && this.place.kind !== 'diff') {
      const { graph, node } = this.place;
      this.subscription = (await session.request('workgraph/subscribe', { graphs: [], output: [{ graph, node }] })).subscription;
    }
  }

  private async renew(): Promise<void> {
    const before = this.text;
    try {
      if (this.link.session) {
        await this.read(this.link.session);
      }
    } catch {
      return; // the connection went: `begin` goes on
    }
    if (this.text !== before) {
      const editors = vscode.window.visibleTextEditors.filter((one) => one.document.uri.toString() === this.uri.toString());
      this.isFollowed = editors.every((one) => (one.visibleRanges.at(-1)?.end.line ?? 0) >= one.document.lineCount - 2);
      this.changed();
    }
  }

  private async read(session: Session): Promise<void> {
    if (this.place.kind === 'diff') {
      await this.readDiff(session);
    } else if (this.place.kind === 'transcript' || !(await this.readResult(session))) {
      await this.readItems(session);
      if (!this.isLive && this.place.kind === 'output') {
        await this.readResult(session); // it may have ended in between
      }
    }
  }

  private async readDiff(session: Session): Promise<void> {
    const { graph, node, attempt } = this.place;
    const { patch, shared } = await session.request('workgraph/diff', { graph, node, attempt });
    const beside = shared.map((one) => vscode.l10n.t('# {0} worked here at the same time', `${one.node}@${one.attempt}`));
    this.text = [...beside, patch || vscode.l10n.t('# nothing was changed')].join('\n');
  }

  /** The captured result, which is there once the attempt has ended. False where there is none. */
  private async readResult(session: Session): Promise<boolean> {
    const { graph, node, attempt } = this.place;
    let text = '';
    for (let offset = 0, total = 1; offset < total && text.length < KEPT_CHARS; ) {
      try {
        const slice = await session.request('workgraph/output', { graph, node, attempt, offset, limit: SLICE_BYTES });
        text += slice.text;
        total = slice.total;
        offset = slice.next > offset ? slice.next : total;
      } catch (trouble) {
        if (isRefused(trouble, 'notFound')) {
          return false;
        }
        throw trouble;
      }
    }
    this.text = text;
    this.isLive = false;
    return true;
  }

  private async readItems(session: Session): Promise<void> {
    const { graph, node, attempt, kind } = this.place;
    for (;;) {
      const page = await session.request('workgraph/observe', { graph, node, attempt, limit: PAGE, ...(this.cursor ? { cursor: this.cursor } : {}) });
      const shown = page.items.map((item) => (kind === 'transcript' ? told(item) : item.kind === 'text' ? (item.text ?? '') : '')).join('');
      this.text = (this.text + shown).slice(-KEPT_CHARS);
      this.isLive = page.live;
      const isMore = page.items.length > 0 && page.cursor !== this.cursor;
      this.cursor = page.cursor;
      if (!isMore) {
        return;
      }
    }
  }
}

/** One piece of a transcript. */
function told(item: ObservedItem): string {
  const text = item.text ?? '';
  if (item.kind === 'text') {
    return text;
  }
  const heading = item.kind === 'tool' ? `tool ${item.tool ?? ''}`.trim() : item.kind;
  const quoted = text.trimEnd().split('\n').map((line) => `> ${line}`).join('\n');
  return `\n\n> **${heading}** ${new Date(item.at).toLocaleTimeString()}\n${quoted}\n\n`;
}
