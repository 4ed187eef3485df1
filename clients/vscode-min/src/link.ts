/** The life of the connection: find the program, start `graphd connect`, and come back when the daemon goes away. */

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import * as vscode from 'vscode';
import { CloseAction, ErrorAction, LanguageClient, Trace, type DynamicFeature, type InitializeParams, type LanguageClientOptions, type StaticFeature } from 'vscode-languageclient/node';
import type { Activity, Ask, Changed, OutputChunk } from 'graphd-protocol';
import { Mirror } from './mirror';
import { findProgram, type Found } from './program';
import { Session, type Transport } from './session';
import { isRefused, messageOf } from './refusals';

export type LinkState = 'idle' | 'untrusted' | 'noFolder' | 'missing' | 'mismatch' | 'failed' | 'starting' | 'ready' | 'reconnecting';

const BACK_OFF_S = [1, 2, 5, 10, 30];
const SHUTDOWN_MS = 2000;
const GREETING_S = 30;
const METHOD_NOT_FOUND = -32601;
const STDERR_CHARS = 2000;
export const WORKFLOWS = ['**/.agents/workflows/*.{yaml,yml}', '**/graphd/workflows/*.{yaml,yml}'];

/** languageclient would register the server's commands under the names that the manifest has; ours save files first. */
class Client extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    const type = (feature as Partial<DynamicFeature<unknown>>).registrationType;
    if (type?.method !== 'workspace/executeCommand') {
      super.registerFeature(feature);
    }
  }

  /** Progress is shown by our own status item. */
  protected override fillInitializeParams(params: InitializeParams): void {
    super.fillInitializeParams(params);
    params.capabilities.window = { ...params.capabilities.window, workDoneProgress: false };
  }

  /** A start that failed is logged and tried again; what to do is said by the view and the status bar, once it is given up. */
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** One folder's connection. `session` is there while it is `ready`; `mirror` outlives every connection. */
export class Link implements vscode.Disposable {
  readonly mirror = new Mirror();
  session: Session | undefined;
  /** The last trouble, in words for people. */
  trouble = '';
  daemon: { version: string; pid: number } | undefined;
  private current: LinkState = 'idle';
  private client: Client | undefined;
  private child: ChildProcessWithoutNullStreams | undefined;
  private life: Promise<void> | undefined;
  private wake: (() => void) | undefined;
  private isWanted = true;
  private readonly moved = new vscode.EventEmitter<LinkState>();
  private readonly changes = new vscode.EventEmitter<Changed>();
  private readonly activities = new vscode.EventEmitter<Activity>();
  private readonly askings = new vscode.EventEmitter<{ opened: readonly Ask[]; closed: readonly { id: string; by?: string | null }[] }>();
  private readonly outputs = new vscode.EventEmitter<OutputChunk>();
  readonly onState = this.moved.event;
  readonly onChanged = this.changes.event;
  readonly onActivity = this.activities.event;
  readonly onAsks = this.askings.event;
  readonly onOutput = this.outputs.event;

  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly trace: vscode.OutputChannel,
    private readonly version: string,
  ) {}

  get state(): LinkState {
    return this.current;
  }

  /** Connect where that has not begun; answers at once. */
  start(): void {
    if (!this.life) {
      this.isWanted = true;
      this.move(this.mirror.store ? 'reconnecting' : 'starting');
      this.life = this.live().finally(() => (this.life = undefined));
    }
  }

  /** The session, once there is one. Rejects with what keeps it from being there. */
  async ready(): Promise<Session> {
    this.start();
    while (!this.session) {
      if (this.current !== 'starting' && this.current !== 'reconnecting') {
        throw new Error(this.trouble || vscode.l10n.t('graphd is not connected'));
      }
      await new Promise<void>((resolve) => {
        const listening = this.onState(() => (listening.dispose(), resolve()));
      });
    }
    return this.session;
  }

  /** End this connection and make another one. */
  async restart(): Promise<void> {
    await this.stop();
    this.start();
  }

  /** End the connection; the daemon and its graphs go on. */
  async stop(): Promise<void> {
    this.isWanted = false;
    this.wake?.();
    await this.client?.stop(SHUTDOWN_MS).catch(() => undefined);
    this.child?.kill();
    await this.life;
    this.move('idle');
  }

  /** Write every message to the trace channel, or no longer. */
  async setTrace(isOn: boolean): Promise<void> {
    await this.client?.setTrace(isOn ? Trace.Verbose : Trace.Off);
  }

  dispose(): void {
    void this.stop();
  }

  private move(state: LinkState): void {
    if (state !== this.current) {
      this.current = state;
      this.log.info(`state: ${state}${this.trouble ? ` (${this.trouble})` : ''}`);
      void vscode.commands.executeCommand('setContext', 'graphd.state', state);
      this.moved.fire(state);
    }
  }

  /** One connection after the other, until nobody wants one or nothing can be done. */
  private async live(): Promise<void> {
    let failures = 0;
    while (this.isWanted) {
      const folder = vscode.workspace.workspaceFolders?.find((item) => item.uri.scheme === 'file')?.uri.fsPath;
      const found = await this.program(folder);
      if (!found || !folder) {
        return;
      }
      try {
        await this.connect(found, folder, () => (failures = 0));
      } catch (trouble) {
        this.trouble = messageOf(trouble);
        this.log.warn(this.trouble);
        this.moved.fire(this.current);
        if (isMismatch(trouble)) {
          this.move('mismatch');
          return;
        }
      }
      const wait = BACK_OFF_S[failures++];
      if (this.isWanted && wait === undefined) {
        this.move('failed');
      }
      if (!this.isWanted || wait === undefined) {
        return;
      }
      await this.pause(wait);
    }
  }

  private async program(folder: string | undefined): Promise<Found | undefined> {
    if (!folder || !vscode.workspace.isTrusted) {
      this.trouble = folder ? vscode.l10n.t('this workspace is not trusted') : vscode.l10n.t('no folder is open');
      this.move(folder ? 'untrusted' : 'noFolder');
      return undefined;
    }
    const setting = vscode.workspace.getConfiguration('graphd').inspect<string>('path');
    const found = await findProgram({
      setting: setting?.globalValue ?? '',
      workspace: folder,
      isTrusted: vscode.workspace.isTrusted,
      path: process.env['PATH'] ?? '',
    });
    if (!found) {
      this.trouble = setting?.globalValue
        ? vscode.l10n.t('the setting graphd.path names {0}, which is no program', setting.globalValue)
        : vscode.l10n.t('the program graphd was not found');
      this.move('missing');
    }
    return found;
  }

  /** Resolves when the connection has ended. Rejects where it did not come to be. */
  private async connect(found: Found, folder: string, connected: () => void): Promise<void> {
    this.log.info(`starting ${found.program} connect (found by ${found.by}) in ${folder}`);
    const child = (this.child = spawn(found.program, ['connect', '--workspace', folder], { cwd: folder }));
    let said = '';
    child.stderr.on('data', (data: Buffer) => {
      said = (said + data.toString()).slice(-STDERR_CHARS);
      this.log.warn(data.toString().trimEnd());
    });
    const failed = new Promise<never>((_, reject) => child.once('error', reject));
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
    const early = ended.then(() => Promise.reject(new Error(said.trim() || vscode.l10n.t('graphd connect ended'))));
    const client = (this.client = new Client('graphd', 'graphd', () => Promise.race([Promise.resolve(child), failed]), this.options()));
    try {
      await within(GREETING_S, Promise.race([this.greet(client, folder), failed, early]));
      connected();
      this.trouble = '';
      this.move('ready');
      await ended;
    } finally {
      await this.leave(client, child);
    }
  }

  private async greet(client: Client, folder: string): Promise<void> {
    await client.start();
    const transport: Transport = {
      sendRequest: (method, params) => client.sendRequest(method, params),
      onNotification: (method, handler) => client.onNotification(method, handler as (params: unknown) => void),
    };
    const session = new Session(transport, this.mirror, {
      changed: (value) => this.changes.fire(value),
      activity: (value) => this.activities.fire(value),
      asks: (opened, closed) => this.askings.fire({ opened, closed }),
      output: (value) => this.outputs.fire(value),
      stopping: (value) => this.log.info(`the daemon stops: ${value.reason}`),
    });
    const hello = await session.open({ client: { name: 'vscode', version: this.version, pid: process.pid }, workspace: folder, locale: vscode.env.language, interactive: true });
    this.daemon = hello.daemon;
    this.session = session;
  }

  private async leave(client: Client, child: ChildProcessWithoutNullStreams): Promise<void> {
    this.session?.dispose();
    this.session = undefined;
    this.client = this.child = undefined;
    if (this.isWanted && this.mirror.store) {
      this.move('reconnecting');
    }
    await client.dispose(SHUTDOWN_MS).catch(() => undefined);
    child.kill();
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: WORKFLOWS.map((pattern) => ({ scheme: 'file', language: 'yaml', pattern })),
      outputChannel: this.log,
      traceOutputChannel: this.trace,
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => ({ action: CloseAction.DoNotRestart, handled: true }),
      },
    };
  }

  private pause(seconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, seconds * 1000);
      this.wake = () => (clearTimeout(timer), resolve());
    });
  }
}

/** The same promise, which rejects after a time. What hangs is not waited for for ever. */
async function within<T>(seconds: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(vscode.l10n.t('graphd did not answer within {0} s', seconds))), seconds * 1000);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** No number that both speak; or something that is older than the greeting itself. */
function isMismatch(trouble: unknown): boolean {
  return isRefused(trouble, 'protocolMismatch') || (trouble as { code?: number }).code === METHOD_NOT_FOUND;
}
