/** The verbs on graphs and nodes. Each asks what it is about where nothing was said, and confirms what can't be undone. */

import { randomUUID } from 'node:crypto';
import * as vscode from 'vscode';
import type { MutationResult, TreeRow } from 'graphd-protocol';
import type { Link } from './link';
import { isEnabled, targetOf, withGraph, withNode } from './targets';

type Done = Promise<MutationResult | undefined>;
const ENDED = ['complete', 'cancelled'];

export class Steering {
  constructor(private readonly link: Link) {}

  async pause(argument: unknown): Done {
    const target = await withGraph(this.link, await this.named(argument), vscode.l10n.t('Pause a graph'), 'pause');
    return target && this.request('workgraph/pause', { graph: target.graph });
  }

  async resume(argument: unknown): Done {
    const target = await withGraph(this.link, await this.named(argument), vscode.l10n.t('Resume a graph'), 'resume');
    return target && this.request('workgraph/resume', { graph: target.graph });
  }

  async step(argument: unknown): Done {
    const target = await withGraph(this.link, await this.named(argument), vscode.l10n.t('Start one node of a graph'));
    return target && this.request('workgraph/step', { graph: target.graph, ...(target.node ? { node: target.node } : {}) });
  }

  async retry(argument: unknown): Done {
    const given = await this.named(argument);
    const target = given.node ? { ...given, graph: given.graph ?? '' } : await withGraph(this.link, given, vscode.l10n.t('Retry what failed'), 'retry');
    return target && this.request('workgraph/retry', { graph: target.graph, ...(target.node ? { node: target.node } : { all: true }) });
  }

  async retryNode(argument: unknown): Done {
    const target = await withNode(this.link, await this.named(argument), vscode.l10n.t('Retry a node'), (row: TreeRow) => isEnabled(row, 'retry'));
    return target && this.request('workgraph/retry', { graph: target.graph, node: target.node });
  }

  async cancel(argument: unknown): Done {
    const target = await withGraph(this.link, await this.named(argument), vscode.l10n.t('Cancel a graph'), 'cancel');
    if (!target) {
      return undefined;
    }
    const yes: vscode.MessageItem = { title: vscode.l10n.t('Cancel the Graph') };
    const detail = vscode.l10n.t('Every process of it is ended, and what has not run will not run.');
    const title = this.link.mirror.graphs.get(target.graph)?.header.title ?? target.graph;
    const no: vscode.MessageItem = { title: vscode.l10n.t('Keep It'), isCloseAffordance: true };
    const said = await vscode.window.showWarningMessage(vscode.l10n.t('Cancel {0}?', title), { modal: true, detail }, yes, no);
    return said === yes ? this.request('workgraph/cancel', { graph: target.graph }) : undefined;
  }

  async finish(argument: unknown): Done {
    const target = await withGraph(this.link, await this.named(argument), vscode.l10n.t('Finish a graph'));
    const reason = target && (await vscode.window.showInputBox({ title: vscode.l10n.t('Finish a graph'), prompt: vscode.l10n.t('Why is it enough? What has not started is skipped.'), validateInput: (text) => (text.trim() ? undefined : vscode.l10n.t('a reason is wanted')) }));
    return target && reason ? this.request('workgraph/finish', { graph: target.graph, reason }) : undefined;
  }

  /** What the argument names, with the newest graph of the file where it names only that. */
  private async named(argument: unknown): Promise<ReturnType<typeof targetOf>> {
    const target = targetOf(argument);
    if (!target.graph && target.uri) {
      target.graph = newestOf(this.link, vscode.Uri.parse(target.uri).fsPath);
    }
    return target;
  }

  private async request(method: 'workgraph/pause' | 'workgraph/resume' | 'workgraph/step' | 'workgraph/retry' | 'workgraph/cancel' | 'workgraph/finish', params: { graph: string; node?: string; all?: boolean; reason?: string }): Done {
    const session = await this.link.ready();
    return session.request(method, { ...params, requestId: randomUUID() } as never);
  }
}

/** The newest graph that was started from a file. */
export function newestOf(link: Link, path: string): string | undefined {
  const found = [...link.mirror.graphs.values()].filter(({ header }) => header.source.path === path);
  return found.sort((a, b) => b.header.createdAt - a.header.createdAt)[0]?.header.id;
}

/** The newest live graph, else the newest. */
export function newest(link: Link): string | undefined {
  const all = [...link.mirror.graphs.values()].sort((a, b) => b.header.createdAt - a.header.createdAt);
  return (all.find(({ header }) => !ENDED.includes(header.status)) ?? all[0])?.header.id;
}
