/** Questions that wait for a person: said once, answered here or elsewhere, gone as soon as they are answered. */

import { randomUUID } from 'node:crypto';
import * as vscode from 'vscode';
import type { Ask, Changed, GraphStatus, RespondParams } from 'graphd-protocol';
import type { Link } from './link';
import { factsOf, isRefused } from './refusals';
import { targetOf } from './targets';

type Scope = NonNullable<RespondParams['scope']>;
type Answer = Omit<RespondParams, 'requestId' | 'dryRun' | 'settle'>;
const MESSAGE_CHARS = 60;
const LABEL_CHARS = 24;
interface Choice extends vscode.QuickPickItem {
  answer?: Answer;
}

export class Asks implements vscode.Disposable {
  /** How to take away what is shown of each ask. */
  private readonly shown = new Map<string, (() => void)[]>();
  private readonly known = new Map<string, { failed: Set<string>; status?: GraphStatus }>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly link: Link) {
    this.subscriptions = [
      link.onAsks(({ opened, closed }) => {
        closed.forEach((ask) => this.hide(ask.id));
        opened.filter((ask) => ask.kind !== 'proposal').forEach((ask) => this.announce(ask));
      }),
      link.onState((state) => state === 'ready' && this.forget()),
      link.onChanged((value) => this.sawChange(value)),
    ];
  }

  dispose(): void {
    [...this.shown.keys()].forEach((id) => this.hide(id));
    this.subscriptions.forEach((item) => item.dispose());
  }

  /** Answer what a lens's argument says, what a row asks, or what is picked. */
  async answer(argument: unknown): Promise<void> {
    const given = argument as Partial<Answer> | undefined;
    if (given?.ask && given.actionHash) {
      return this.respond(given as Answer);
    }
    const session = await this.link.ready();
    const { graph, node } = targetOf(argument);
    const asks = [...session.asks.values()].filter((ask) => ask.kind !== 'proposal' && (!graph || ask.graph === graph) && (!node || ask.node === node) && (!given?.ask || ask.id === given.ask));
    const ask = asks.length > 1 ? await this.pickAsk(asks) : asks[0];
    if (!ask) {
      void vscode.window.showInformationMessage(asks.length ? vscode.l10n.t('Nothing was answered.') : vscode.l10n.t('Nothing waits for an answer.'));
      return undefined;
    }
    const answer = ask.options.length ? await this.pickAnswer(ask) : await this.typeAnswer(ask);
    return answer && this.respond(answer);
  }

  // ---- what is shown -------------------------------------------------------------------------------------------------

  /** A message with the answers in it, which ends by itself when the ask is answered anywhere. */
  private announce(ask: Ask): void {
    const level = notifications();
    if (level === 'off' || this.shown.has(ask.id)) {
      return;
    }
    const options = { location: vscode.ProgressLocation.Notification, title: ask.node ? vscode.l10n.t('{0} asks', ask.node) : 'graphd', cancellable: false };
    void vscode.window.withProgress(options, (progress) => {
      progress.report({ message: `${plain(what(ask), MESSAGE_CHARS)} ${this.links(ask)}` });
      return new Promise<void>((resolve) => this.remember(ask.id, resolve));
    });
  }

  private links(ask: Ask): string {
    const once = ask.options.map((option) => link(option['label'] ?? option['id'] ?? '', { ask: ask.id, actionHash: ask.actionHash, option: option['id'] ?? '', scope: 'once' }));
    const more = ask.options.length && ask.scopes.length < 2 ? [] : [link(ask.options.length ? vscode.l10n.t('More…') : vscode.l10n.t('Answer…'), { ask: ask.id })];
    return [...once, ...more].join(' · ');
  }

  private remember(id: string, hide: () => void): void {
    this.shown.set(id, [...(this.shown.get(id) ?? []), hide]);
  }

  private hide(id: string): void {
    this.shown.get(id)?.forEach((hide) => hide());
    this.shown.delete(id);
  }

  /** What was answered while there was no connection. */
  private forget(): void {
    [...this.shown.keys()].filter((id) => !this.link.session?.asks.has(id)).forEach((id) => this.hide(id));
  }

  private async pickAsk(asks: Ask[]): Promise<Ask | undefined> {
    const items = asks.map((ask) => ({ label: what(ask), description: ask.node ?? '', ask }));
    return (await vscode.window.showQuickPick(items, { title: vscode.l10n.t('Which question?') }))?.ask;
  }

  private pickAnswer(ask: Ask): Promise<Answer | undefined> {
    const pick = vscode.window.createQuickPick<Choice>();
    pick.title = ask.node ? vscode.l10n.t('{0} asks', ask.node) : 'graphd';
    pick.placeholder = what(ask);
    pick.items = choices(ask);
    this.remember(ask.id, () => pick.hide());
    return new Promise((resolve) => {
      pick.onDidAccept(() => (resolve(pick.selectedItems[0]?.answer), pick.hide()));
      pick.onDidHide(() => (resolve(undefined), pick.dispose()));
      pick.show();
    });
  }

  private typeAnswer(ask: Ask): Promise<Answer | undefined> {
    const input = vscode.window.createInputBox();
    input.title = ask.node ? vscode.l10n.t('{0} asks', ask.node) : 'graphd';
    input.prompt = what(ask);
    input.ignoreFocusOut = true;
    this.remember(ask.id, () => input.hide());
    return new Promise((resolve) => {
      input.onDidAccept(() => {
        resolve(input.value.trim() ? { ask: ask.id, actionHash: ask.actionHash, text: input.value } : undefined);
        input.hide();
      });
      input.onDidHide(() => (resolve(undefined), input.dispose()));
      input.show();
    });
  }

  private async respond(answer: Answer): Promise<void> {
    const session = await this.link.ready();
    try {
      await session.request('workgraph/respond', { ...answer, requestId: randomUUID() });
    } catch (trouble) {
      if (!isRefused(trouble, 'askGone')) {
        throw trouble;
      }
      this.hide(answer.ask);
      void vscode.window.showInformationMessage(vscode.l10n.t('This was answered already, by {0}.', String(factsOf(trouble)['by'] ?? '?')));
    }
  }

  // ---- failures and ends ---------------------------------------------------------------------------------------------

  /** Says what is new; what there was before we looked is not. */
  private sawChange(value: Changed): void {
    const before = this.known.get(value.graph);
    const failed = before?.failed ?? new Set<string>();
    const fresh = (value.nodes ?? []).filter((node) => node.state === 'failed' && !failed.has(node.slug));
    value.nodes?.forEach((node) => (node.state === 'failed' ? failed.add(node.slug) : failed.delete(node.slug)));
    const status = value.header?.status ?? before?.status;
    this.known.set(value.graph, { failed, status });
    if (!before && this.link.state !== 'ready') {
      return;
    }
    if (fresh.length && notifications() !== 'off') {
      void this.tellFailures(value, fresh.map((node) => `${node.slug}: ${node.failure?.reason ?? ''}`), fresh[0]?.slug ?? '');
    } else if (status === 'complete' && before?.status !== 'complete' && notifications() === 'all') {
      void vscode.window.showInformationMessage(vscode.l10n.t('{0} is complete.', value.header?.title ?? value.graph));
    }
  }

  private async tellFailures(value: Changed, lines: string[], node: string): Promise<void> {
    const open = vscode.l10n.t('Open Output');
    const said = await vscode.window.showErrorMessage(vscode.l10n.t('Failed: {0}', lines.join('; ').slice(0, 300)), open);
    if (said === open) {
      await vscode.commands.executeCommand('graphd.openOutput', { graph: value.graph, node });
    }
  }
}

function notifications(): 'off' | 'important' | 'all' {
  return vscode.workspace.getConfiguration('graphd').get('notifications', 'important');
}

/** What is asked, in one line: the title, and the command or files that it is about. */
function what(ask: Ask): string {
  const { command, paths } = ask.action as { command?: string; paths?: string[] };
  const about = command ?? paths?.join(', ');
  return about && !ask.title.includes(about) ? `${ask.title}: ${about}` : ask.title;
}

/** Agents' words make no links of their own, and leave room for ours: all of them stand in the pick. */
function plain(text: string, limit: number): string {
  const line = text.replace(/\s+/g, ' ').replaceAll('[', '(').replaceAll(']', ')');
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
}

function link(label: string, argument: Partial<Answer>): string {
  return `[${plain(label, LABEL_CHARS)}](command:graphd.answer?${encodeURIComponent(JSON.stringify([argument]))})`;
}

/** Every option once, then as a standing answer where that may be, under a line that says what it would cover. */
function choices(ask: Ask): Choice[] {
  const says: Record<Scope, string> = {
    once: vscode.l10n.t('this once'),
    attempt: vscode.l10n.t('for the rest of this attempt'),
    graph: vscode.l10n.t('for the whole graph'),
  };
  return (ask.scopes as Scope[]).flatMap((scope) => {
    const covers = scope !== 'once' && ask.rule ? vscode.l10n.t('covers {0}', ask.rule) : '';
    const answers = ask.options.map((option) => ({
      label: option['label'] ?? option['id'] ?? '',
      description: says[scope],
      answer: { ask: ask.id, actionHash: ask.actionHash, option: option['id'] ?? '', scope },
    }));
    return [{ label: covers, kind: vscode.QuickPickItemKind.Separator }, ...answers];
  });
}
