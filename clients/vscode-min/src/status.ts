/** The status bar item, the view's badge, and how the daemon does beside workflow files. */

import * as vscode from 'vscode';
import type { GraphStatus } from 'graphd-protocol';
import { WORKFLOWS, type Link, type LinkState } from './link';
import type { Held } from './mirror';

const ENDED: readonly GraphStatus[] = ['complete', 'cancelled'];
const SETTLED = ['achieved', 'failed', 'blocked', 'skipped', 'cancelled'];

/** How far the graphs are that count: those that are live, else the newest. */
export interface Progress {
  settled: number;
  all: number;
  failed: number;
  asks: number;
  names: string[];
}

export function progressOf(graphs: Iterable<Held>, asks: number): Progress {
  const held = [...graphs].sort((a, b) => b.header.createdAt - a.header.createdAt);
  const live = held.filter(({ header }) => !ENDED.includes(header.status));
  const counted = live.length ? live : held.slice(0, 1);
  const sum = (states: string[]): number => counted.reduce((total, { header }) => total + states.reduce((part, state) => part + (header.counts[state] ?? 0), 0), 0);
  const every = counted.flatMap(({ header }) => Object.keys(header.counts));
  return { settled: sum(SETTLED), all: sum([...new Set(every)]), failed: sum(['failed']), asks, names: counted.map(({ header }) => header.title) };
}

export class Status implements vscode.Disposable {
  private readonly bar = vscode.window.createStatusBarItem('graphd.progress', vscode.StatusBarAlignment.Left, 10);
  private readonly health = vscode.languages.createLanguageStatusItem('graphd.health', WORKFLOWS.map((pattern) => ({ scheme: 'file', language: 'yaml', pattern })));
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly link: Link,
    private readonly view: vscode.TreeView<unknown>,
  ) {
    this.bar.name = 'graphd';
    this.bar.command = 'graphd.graphs.focus';
    this.health.name = 'graphd';
    this.subscriptions = [this.bar, this.health, link.onState(() => this.draw()), link.onChanged(() => this.draw()), link.onAsks(() => this.draw())];
    this.draw();
  }

  dispose(): void {
    this.subscriptions.forEach((item) => item.dispose());
  }

  private draw(): void {
    const progress = progressOf(this.link.mirror.graphs.values(), this.link.session?.asks.size ?? 0);
    this.drawBar(progress);
    this.drawBadge(progress);
    this.drawHealth();
  }

  private drawBar({ settled, all, failed, asks, names }: Progress): void {
    if (!all) {
      this.bar.hide();
      return;
    }
    const icon = this.link.state === 'reconnecting' ? '$(sync~spin)' : '$(type-hierarchy)';
    this.bar.text = `${icon} ${settled}/${all}${asks ? ` $(question) ${asks}` : ''}`;
    const lines = [names.join(', '), vscode.l10n.t('{0} of {1} nodes are settled', settled, all), ...wanting(asks, failed)];
    this.bar.tooltip = lines.join('\n');
    this.bar.accessibilityInformation = { label: `graphd: ${lines.join(', ')}` };
    this.bar.backgroundColor = failed ? new vscode.ThemeColor('statusBarItem.errorBackground') : undefined;
    this.bar.show();
  }

  private drawBadge({ failed, asks }: Progress): void {
    const value = failed + asks;
    this.view.badge = value ? { value, tooltip: wanting(asks, failed).join(', ') } : undefined;
  }

  private drawHealth(): void {
    const { daemon, state, trouble } = this.link;
    this.health.busy = state === 'starting' || state === 'reconnecting';
    this.health.text = daemon && state === 'ready' ? `graphd ${daemon.version}` : 'graphd';
    this.health.detail = state === 'ready' ? vscode.l10n.t('daemon {0}', daemon?.pid ?? 0) : trouble || SAID[state]();
    this.health.severity = BROKEN.includes(state) ? vscode.LanguageStatusSeverity.Error : vscode.LanguageStatusSeverity.Information;
    this.health.command = BROKEN.includes(state) ? { command: 'graphd.restart', title: vscode.l10n.t('Restart') } : { command: 'graphd.showLogs', title: vscode.l10n.t('Show Logs') };
  }
}

/** What wants a person's eyes. */
function wanting(asks: number, failed: number): string[] {
  return [...(asks ? [vscode.l10n.t('questions that wait for you: {0}', asks)] : []), ...(failed ? [vscode.l10n.t('failed nodes: {0}', failed)] : [])];
}

const BROKEN: readonly LinkState[] = ['missing', 'mismatch', 'failed'];
const SAID: Record<LinkState, () => string> = {
  idle: () => vscode.l10n.t('not connected'),
  untrusted: () => vscode.l10n.t('this workspace is not trusted'),
  noFolder: () => vscode.l10n.t('no folder is open'),
  missing: () => vscode.l10n.t('the program graphd was not found'),
  mismatch: () => vscode.l10n.t('the daemon speaks another protocol'),
  failed: () => vscode.l10n.t('graphd could not be started'),
  starting: () => vscode.l10n.t('starting'),
  ready: () => vscode.l10n.t('connected'),
  reconnecting: () => vscode.l10n.t('reconnecting'),
};
