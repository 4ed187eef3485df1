/** The graph as a picture beside the editor. The daemon lays it out; the page draws it and keeps it still. */

import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';
import type { Picture, TreeRow } from 'graphd-protocol';
import type { Link } from './link';
import { Pace } from './pace';
import { messageOf } from './refusals';
import { newest, newestOf } from './steering';
import { targetOf } from './targets';

const VIEW = 'graphd.graph';
const PACE_MS = 80;
const NODES_LIMIT = 100;
const COMMANDS = ['graphd.pause', 'graphd.resume', 'graphd.retry', 'graphd.cancel', 'graphd.openOutput', 'graphd.answer'];

/** What the page is told. */
export interface ToPage {
  graph: string;
  picture?: Picture;
  row?: TreeRow;
  asks: string[];
  words: Record<string, string>;
  trouble?: string;
}

/** What the page asks for. */
export interface FromPage {
  command?: string;
  argument?: Record<string, unknown>;
  isReady?: boolean;
}

/** One panel a graph; a window that comes back has its panels again. */
export class Panels implements vscode.WebviewPanelSerializer<{ graph?: string } | undefined>, vscode.Disposable {
  private readonly open = new Map<string, Panel>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly link: Link,
    private readonly home: vscode.Uri,
  ) {
    this.subscriptions = [
      vscode.window.registerWebviewPanelSerializer(VIEW, this),
      link.onChanged((value) => this.open.get(value.graph)?.touch()),
      link.onAsks(() => this.open.forEach((panel) => panel.touch())),
      link.onState(() => this.open.forEach((panel) => panel.touch())),
    ];
  }

  /** Show the graph that is named, else the one of the file in sight, else the newest. */
  async show(argument: unknown): Promise<void> {
    await this.link.ready();
    const target = targetOf(argument);
    const path = target.uri ? vscode.Uri.parse(target.uri).fsPath : vscode.window.activeTextEditor?.document.uri.fsPath;
    const graph = target.graph ?? newestOf(this.link, path ?? '') ?? newest(this.link);
    if (!graph) {
      const run = vscode.l10n.t('Run a Workflow');
      const said = await vscode.window.showInformationMessage(vscode.l10n.t('There is no graph in this workspace yet.'), run);
      return said === run ? vscode.commands.executeCommand('graphd.run', target.uri && target) : undefined;
    }
    const shown = this.open.get(graph);
    if (shown) {
      shown.reveal();
      return undefined;
    }
    const page = vscode.window.createWebviewPanel(VIEW, 'graphd', { viewColumn: vscode.ViewColumn.Beside, preserveFocus: false }, this.options());
    this.take(page, graph);
    return undefined;
  }

  deserializeWebviewPanel(page: vscode.WebviewPanel, state: { graph?: string } | undefined): Promise<void> {
    page.webview.options = this.options();
    this.link.start();
    this.take(page, state?.graph ?? newest(this.link) ?? '');
    return Promise.resolve();
  }

  dispose(): void {
    this.subscriptions.forEach((item) => item.dispose());
    this.open.forEach((panel) => panel.dispose());
  }

  private take(page: vscode.WebviewPanel, graph: string): void {
    const panel = new Panel(this.link, page, graph, this.home);
    this.open.set(graph, panel);
    page.onDidDispose(() => (panel.dispose(), this.open.delete(graph)));
  }

  private options(): vscode.WebviewOptions {
    return { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(this.home, 'dist'), vscode.Uri.joinPath(this.home, 'media')] };
  }
}

class Panel {
  private readonly pace = new Pace(() => this.draw(), PACE_MS);
  private isReady = false;

  constructor(
    private readonly link: Link,
    private readonly page: vscode.WebviewPanel,
    private readonly graph: string,
    home: vscode.Uri,
  ) {
    page.iconPath = { light: vscode.Uri.joinPath(home, 'media', 'graph-light.svg'), dark: vscode.Uri.joinPath(home, 'media', 'graph-dark.svg') };
    page.webview.onDidReceiveMessage((message: FromPage) => this.heard(message));
    page.webview.html = html(page.webview, home);
  }

  touch(): void {
    if (this.isReady) {
      this.pace.touch();
    }
  }

  reveal(): void {
    this.page.reveal();
  }

  dispose(): void {
    this.pace.dispose();
    this.isReady = false;
  }

  private heard(message: FromPage): void {
    if (message.isReady) {
      this.isReady = true;
      this.touch();
    } else if (message.command && COMMANDS.includes(message.command)) {
      void vscode.commands.executeCommand(message.command, { ...message.argument, graph: this.graph });
    }
  }

  private async draw(): Promise<void> {
    const told: ToPage = { graph: this.graph, asks: [], words: words() };
    if (this.link.state === 'reconnecting') {
      this.tell({ ...told, trouble: vscode.l10n.t('Reconnecting to graphd…') });
    }
    try {
      const session = this.link.session ?? (await this.link.ready());
      const picture = await session.request('workgraph/picture', { graph: this.graph, maxNodes: NODES_LIMIT });
      const row = (await session.request('workgraph/tree', {})).find((one) => one.id === this.graph);
      const asks = [...session.asks.values()].filter((ask) => ask.graph === this.graph && ask.kind !== 'proposal');
      Object.assign(told, { picture, row, asks: asks.map((ask) => ask.node ?? '') });
      this.page.title = row?.label ?? 'graphd';
    } catch (trouble) {
      told.trouble = this.link.state === 'reconnecting' ? vscode.l10n.t('Reconnecting to graphd…') : messageOf(trouble);
    }
    this.tell(told);
  }

  private tell(told: ToPage): void {
    if (this.isReady) {
      void this.page.webview.postMessage(told);
    }
  }
}

function words(): Record<string, string> {
  return {
    hidden: vscode.l10n.t('{0} more nodes are not drawn: this is what lies around those that run or failed.'),
    asText: vscode.l10n.t('The graph in words'),
    picture: vscode.l10n.t('Graph. Arrow keys move between nodes, Enter opens the output.'),
    asks: vscode.l10n.t('asks'),
    now: vscode.l10n.t('{0} is {1} now'),
  };
}

/** Nothing but our own script and style sheet is loaded or run. */
function html(webview: vscode.Webview, home: vscode.Uri): string {
  const nonce = randomBytes(16).toString('base64');
  const script = webview.asWebviewUri(vscode.Uri.joinPath(home, 'dist', 'page.js'));
  const style = webview.asWebviewUri(vscode.Uri.joinPath(home, 'media', 'page.css'));
  return `<!DOCTYPE html>
<html lang="${vscode.env.language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}';">
<link rel="stylesheet" href="${style}">
</head>
<body>
<header id="header"></header>
<p id="trouble" role="status"></p>
<main id="main"></main>
<p id="hidden"></p>
<div id="said" class="unseen" aria-live="polite"></div>
<details id="twin"><summary id="twin-title"></summary><pre id="text" tabindex="0"></pre></details>
<script nonce="${nonce}" src="${script}"></script>
</body>
</html>`;
}
