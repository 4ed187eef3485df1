/** Commands that look: output, transcript, diff, and why something is where it is. */

import * as vscode from 'vscode';
import type { Documents, Kind } from './documents';
import type { Link } from './link';
import { isEnabled, targetOf, withNode } from './targets';

const LANGUAGES: Record<string, string> = { 'application/json': 'json', 'text/markdown': 'markdown' };

export class Looking {
  constructor(
    private readonly link: Link,
    private readonly documents: Documents,
  ) {}

  openOutput(argument: unknown): Promise<void> {
    return this.open(argument, 'output', vscode.l10n.t('Open the output of a node'));
  }

  openTranscript(argument: unknown): Promise<void> {
    return this.open(argument, 'transcript', vscode.l10n.t('Follow the transcript of a node'));
  }

  diff(argument: unknown): Promise<void> {
    return this.open(argument, 'diff', vscode.l10n.t('Show what a node changed'));
  }

  /** The reasons, each with what to type next; the chosen one's command is copied. */
  async why(argument: unknown): Promise<void> {
    const target = await withNode(this.link, targetOf(argument), vscode.l10n.t('Why is a node where it is?'));
    if (!target) {
      return;
    }
    const session = await this.link.ready();
    const reasons = await session.request('workgraph/why', { graph: target.graph, node: target.node });
    const items = reasons.map((reason) => ({ label: reason.detail, detail: reason.next ? `$(terminal) ${reason.next}` : undefined, next: reason.next }));
    const chosen = await vscode.window.showQuickPick(items, { title: vscode.l10n.t('Why is {0} where it is?', target.node), placeHolder: vscode.l10n.t('Enter copies the command to type next') });
    if (chosen?.next) {
      await vscode.env.clipboard.writeText(chosen.next);
      vscode.window.setStatusBarMessage(vscode.l10n.t('Copied: {0}', chosen.next), 5000);
    }
  }

  private async open(argument: unknown, kind: Kind, title: string): Promise<void> {
    const target = await withNode(this.link, targetOf(argument), title, (row) => isEnabled(row, 'openOutput'));
    if (!target) {
      return;
    }
    const session = await this.link.ready();
    const { node, attempts } = await session.request('workgraph/node', { graph: target.graph, node: target.node });
    const attempt = target.attempt ?? attempts.filter((one) => one.role === 'worker').at(-1)?.number;
    if (!attempt) {
      void vscode.window.showInformationMessage(vscode.l10n.t('{0} has not started yet.', node.slug));
      return;
    }
    const graph = this.link.mirror.graphs.has(target.graph) ? target.graph : await this.idOf(target.graph);
    await this.documents.open({ kind, graph, node: node.slug, attempt }, kind === 'output' ? LANGUAGES[node.output?.mediaType ?? ''] : undefined);
  }

  private async idOf(name: string): Promise<string> {
    const session = await this.link.ready();
    return (await session.request('workgraph/status', { graph: name }))?.id ?? name;
  }
}
