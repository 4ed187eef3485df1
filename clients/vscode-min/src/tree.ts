/** The view of graphs, nodes and attempts: the daemon's rows as they stand, and again those that changed. */

import * as vscode from 'vscode';
import type { Activity, Ask, AskClosed, Changed } from 'graphd-protocol';
import type { Link } from './link';
import { Pace } from './pace';
import { renewed, Row } from './rows';

const PACE_MS = 60;
const COLOURS: Record<string, string> = {
  active: 'charts.blue',
  running: 'charts.blue',
  live: 'charts.blue',
  starting: 'charts.blue',
  achieved: 'testing.iconPassed',
  complete: 'testing.iconPassed',
  failed: 'testing.iconFailed',
  blocked: 'list.warningForeground',
  stuck: 'list.warningForeground',
  infra_paused: 'list.warningForeground',
  budget_limited: 'list.warningForeground',
};

export class Tree implements vscode.TreeDataProvider<Row>, vscode.Disposable {
  private readonly fired = new vscode.EventEmitter<Row | undefined>();
  readonly onDidChangeTreeData = this.fired.event;
  readonly view: vscode.TreeView<Row>;
  private roots: Row[] | undefined;
  private readonly stale = new Map<string, Set<string>>();
  private readonly phases = new Map<string, string>();
  private readonly pace = new Pace(() => this.renew(), PACE_MS);
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly link: Link) {
    this.view = vscode.window.createTreeView('graphd.graphs', { treeDataProvider: this, showCollapseAll: true });
    this.subscriptions = [
      this.view,
      this.view.onDidChangeVisibility(({ visible }) => visible && link.start()),
      link.onState(() => this.moved()),
      link.onChanged((value) => this.changed(value)),
      link.onActivity((value) => this.active(value)),
      link.onAsks(({ opened, closed }) => this.asked(opened, closed)),
    ];
  }

  getTreeItem(row: Row): vscode.TreeItem {
    const { said } = row;
    const item = new vscode.TreeItem(said.label, COLLAPSIBLE[said.collapsible]);
    const { ask } = row;
    const verbs = said.commands.filter((command) => command.enabled).map((command) => command.command.slice('graphd.'.length));
    item.id = said.id;
    item.description = said.description;
    item.tooltip = said.description ? `${said.label} — ${said.description}` : said.label;
    item.contextValue = [said.contextValue, ...verbs, ...(ask ? ['answer'] : [])].join(';') + ';';
    const colour = COLOURS[said.icon === 'warning' ? 'stuck' : said.state];
    item.iconPath = ask ? new vscode.ThemeIcon('question', new vscode.ThemeColor('list.warningForeground')) : new vscode.ThemeIcon(said.icon, colour ? new vscode.ThemeColor(colour) : undefined);
    item.accessibilityInformation = { label: [said.label, said.state.replaceAll('_', ' '), said.description].filter(Boolean).join(', ') };
    const opens = ask ? 'graphd.answer' : verbs.includes('openOutput') ? 'graphd.openOutput' : undefined;
    if (opens) {
      item.command = { command: opens, title: opens, arguments: [row] };
    }
    return item;
  }

  async getChildren(row?: Row): Promise<Row[]> {
    const held = row ? row.below : this.roots;
    if (held) {
      return held;
    }
    if (!this.link.session) {
      if (this.view.visible) {
        this.link.start();
      }
      return [];
    }
    return this.load(row);
  }

  getParent(row: Row): Row | undefined {
    return row.above;
  }

  dispose(): void {
    this.pace.dispose();
    this.subscriptions.forEach((item) => item.dispose());
  }

  // ---- what happens --------------------------------------------------------------------------------------------------

  private moved(): void {
    const isBack = this.link.state === 'ready';
    const { state, trouble } = this.link;
    this.view.message = state === 'reconnecting' ? vscode.l10n.t('Reconnecting to graphd…') : state === 'starting' ? trouble || undefined : undefined;
    if (isBack && !this.roots) {
      this.fired.fire(undefined);
    } else if (isBack) {
      this.roots?.forEach((row) => this.touch(row.id, undefined));
      this.pace.touch();
    }
  }

  private changed(value: Changed): void {
    this.touch(value.graph, undefined);
    value.nodes?.forEach((node) => this.touch(value.graph, node.slug));
  }

  private asked(opened: readonly Ask[], closed: readonly AskClosed[]): void {
    opened.forEach((ask) => ask.graph && this.touch(ask.graph, ask.node));
    const gone = new Set(closed.map((ask) => ask.id));
    this.all().filter((row) => row.ask && gone.has(row.ask)).forEach((row) => this.touch(row.target.graph, row.target.node));
  }

  /** Only a new phase is drawn: what an attempt prints is not. */
  private active(value: Activity): void {
    for (const node of value.nodes) {
      const key = `${value.graph}/${node.node}`;
      if (this.phases.get(key) !== node.phase) {
        this.phases.set(key, node.phase);
        this.touch(value.graph, node.node);
      }
    }
  }

  private touch(graph: string, node: string | null | undefined): void {
    const nodes = this.stale.get(graph) ?? new Set();
    this.stale.set(graph, node ? nodes.add(node) : nodes);
    this.pace.touch();
  }

  /** Ask again for what is drawn of the graphs that changed. */
  private async renew(): Promise<void> {
    if (!this.link.session || !this.roots) {
      return;
    }
    const stale = [...this.stale];
    this.stale.clear();
    try {
      await this.load(undefined, true);
      for (const [graph, nodes] of stale) {
        const row = this.roots.find((one) => one.id === graph);
        if (row?.below) {
          await this.load(row, true);
          for (const below of row.below.filter((one) => one.below && nodes.has(one.target.node ?? ''))) {
            await this.load(below, true);
          }
        }
      }
    } catch {
      stale.forEach(([graph, nodes]) => this.stale.set(graph, nodes)); // the connection went: it is asked for again after it
    }
  }

  private async load(row: Row | undefined, isAgain = false): Promise<Row[]> {
    const params = row ? row.params : {};
    if (!params || !this.link.session) {
      return [];
    }
    const said = await this.link.session.request('workgraph/tree', params);
    const { rows, changed, moved } = renewed(row ? row.below : this.roots, said, row);
    rows.filter((one) => one.ask !== this.askOf(one) && !changed.includes(one)).forEach((one) => changed.push(one));
    rows.forEach((one) => (one.ask = this.askOf(one)));
    if (row) {
      row.below = rows;
    } else {
      this.roots = rows;
      void vscode.commands.executeCommand('setContext', 'graphd.hasGraphs', rows.length > 0);
    }
    if (isAgain && moved) {
      this.fired.fire(row);
    } else if (isAgain) {
      changed.forEach((one) => this.fired.fire(one));
    }
    return rows;
  }

  private all(): Row[] {
    const below = (row: Row): Row[] => [row, ...(row.below ?? []).flatMap(below)];
    return (this.roots ?? []).flatMap(below);
  }

  private askOf(row: Row): string | undefined {
    const { graph, node, attempt } = row.target;
    const asks = [...(this.link.session?.asks.values() ?? [])];
    return attempt ? undefined : asks.find((ask) => ask.graph === graph && (ask.node ?? undefined) === node && ask.kind !== 'proposal')?.id;
  }
}

const COLLAPSIBLE = {
  none: vscode.TreeItemCollapsibleState.None,
  collapsed: vscode.TreeItemCollapsibleState.Collapsed,
  expanded: vscode.TreeItemCollapsibleState.Expanded,
};
