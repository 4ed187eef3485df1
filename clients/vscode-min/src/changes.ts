/** The plan of a running graph: apply the edited file, accept or dismiss what was proposed. The diff is seen first. */

import { randomUUID } from 'node:crypto';
import * as vscode from 'vscode';
import type { PlanDiff } from 'graphd-protocol';
import type { Link } from './link';
import { saved } from './running';
import { newest, newestOf } from './steering';
import { targetOf } from './targets';

interface Choice extends vscode.QuickPickItem {
  graph: string;
  proposal: string;
}

export class Changes {
  constructor(private readonly link: Link) {}

  /** What the file has become against the graph that was started from it: shown, then carried out as one plan version. */
  async apply(argument: unknown): Promise<void> {
    const target = targetOf(argument);
    const uri = target.uri ? vscode.Uri.parse(target.uri) : this.fileOf(target.graph);
    if (!uri || !(await saved(uri))) {
      return;
    }
    const session = await this.link.ready();
    const text = (await vscode.workspace.openTextDocument(uri)).getText();
    const params = { file: uri.fsPath, text, ...(target.graph ? { graph: target.graph } : {}) };
    const rehearsed = await session.request('workgraph/apply', { ...params, dryRun: true });
    const expectedPlan = this.link.mirror.graphs.get(rehearsed.graph)?.header.planVersion;
    const lines = rehearsed.diff ? linesOf(rehearsed.diff) : [];
    if (!rehearsed.preview) {
      void vscode.window.showInformationMessage([vscode.l10n.t('The running graph has this plan already.'), ...lines].join(' '));
      return;
    }
    if (!(await confirmed(vscode.l10n.t('Apply this to the running graph?'), lines, vscode.l10n.t('Apply')))) {
      return;
    }
    const { graph, proposal } = await session.request('workgraph/apply', { ...params, expectedPlan, requestId: randomUUID() });
    if (proposal) {
      await session.request('workgraph/accept', { graph, proposal, requestId: randomUUID() });
    }
  }

  async accept(argument: unknown): Promise<void> {
    const chosen = await this.pick(argument, vscode.l10n.t('Accept a proposal'));
    if (!chosen) {
      return;
    }
    const session = await this.link.ready();
    const { diff } = await session.request('workgraph/accept', { ...chosen, dryRun: true });
    if (await confirmed(vscode.l10n.t('Accept this proposal?'), diff ? linesOf(diff) : [], vscode.l10n.t('Accept'))) {
      await session.request('workgraph/accept', { ...chosen, requestId: randomUUID() });
    }
  }

  async dismiss(argument: unknown): Promise<void> {
    const chosen = await this.pick(argument, vscode.l10n.t('Dismiss a proposal'));
    if (chosen) {
      const session = await this.link.ready();
      await session.request('workgraph/dismiss', { ...chosen, requestId: randomUUID() });
    }
  }

  private fileOf(graph: string | undefined): vscode.Uri | undefined {
    const name = graph ?? newestOf(this.link, vscode.window.activeTextEditor?.document.uri.fsPath ?? '') ?? newest(this.link);
    const path = this.link.mirror.graphs.get(name ?? '')?.header.source.path;
    if (!path) {
      void vscode.window.showInformationMessage(vscode.l10n.t('No graph was started from a file yet.'));
    }
    return path ? vscode.Uri.file(path) : undefined;
  }

  private async pick(argument: unknown, title: string): Promise<{ graph: string; proposal: string } | undefined> {
    await this.link.ready();
    const { graph } = targetOf(argument);
    const items: Choice[] = [...this.link.mirror.graphs].filter(([id]) => !graph || id === graph).flatMap(([id, held]) =>
      held.proposals.map((one) => ({ label: String(one['reason'] ?? one['id']), description: held.header.title, detail: vscode.l10n.t('by {0}', String(one['author'] ?? '')), graph: id, proposal: String(one['id']) })),
    );
    if (!items.length) {
      void vscode.window.showInformationMessage(vscode.l10n.t('There is no proposal.'));
      return undefined;
    }
    const chosen = items.length === 1 ? items[0] : await vscode.window.showQuickPick(items, { title });
    return chosen && { graph: chosen.graph, proposal: chosen.proposal };
  }
}

async function confirmed(question: string, lines: string[], yes: string): Promise<boolean> {
  return (await vscode.window.showInformationMessage(question, { modal: true, detail: lines.join('\n') }, yes)) === yes;
}

/** A plan's diff, a line for each thing that happens. */
export function linesOf(diff: PlanDiff): string[] {
  return [
    ...(diff.added ?? []).map((node) => `+ ${node}`),
    ...(diff.changed ?? []).map((one) => `~ ${one.node}: ${one.fields.join(', ')}`),
    ...(diff.removed ?? []).map((one) => `- ${one.node}: ${one.reason}`),
    ...(diff.stopped ?? []).map((one) => vscode.l10n.t('{0} is stopped first, then {1}', one.node, one.then)),
    ...(diff.moved ?? []).map((one) => `${one.node}: ${one.origin} → ${one.state}`),
    ...(diff.kept ?? []).map((node) => vscode.l10n.t('{0} is no longer in the file; what is done stays', node)),
  ];
}
