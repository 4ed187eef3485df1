/** One connection's conversation with the daemon. Knows the wire and no editor: tests replay golden conversations by it. */

import type { Activity, Ask, AsksNotice, Changed, HelloParams, HelloResult, OutputChunk, Requests, ServerNotifications, StoppingNotice } from 'graphd-protocol';
import { ChainBroken, type Mirror } from './mirror';

export const PROTOCOL: [number, number] = [1, 1];

/** What a session needs of a connection: languageclient's and jsonrpc's both have it. */
export interface Transport {
  sendRequest<R>(method: string, params: unknown): Promise<R>;
  onNotification(method: string, handler: (params: never) => void): { dispose(): void };
}

/** What a session tells. All of it comes after the mirror and the asks are up to date. */
export interface Listener {
  changed(value: Changed): void;
  activity(value: Activity): void;
  asks(opened: readonly Ask[], closed: readonly { id: string; by?: string | null }[]): void;
  output(value: OutputChunk): void;
  stopping(value: StoppingNotice): void;
}

/** Greets, subscribes from the revs that are held, and keeps mirror and asks true. */
export class Session {
  /** The open questions by id, oldest first. */
  readonly asks = new Map<string, Ask>();
  private readonly handlers: { dispose(): void }[] = [];
  private subscription: string | undefined;

  constructor(
    private readonly transport: Transport,
    readonly mirror: Mirror,
    private readonly listener: Listener,
  ) {}

  /** One request, typed by the protocol. */
  request<M extends keyof Requests>(method: M, params: Requests[M]['params']): Promise<Requests[M]['result']> {
    return this.transport.sendRequest(method, params);
  }

  /** Say hello and follow every graph. Rejects with the daemon's refusal. */
  async open(hello: Omit<HelloParams, 'protocol'>): Promise<HelloResult> {
    this.on('workgraph/changed', (value) => this.changed(value));
    this.on('workgraph/activity', (value) => this.listener.activity(value));
    this.on('workgraph/asks', (value) => this.noticed(value));
    this.on('workgraph/output', (value) => this.listener.output(value));
    this.on('graphd/stopping', (value) => this.listener.stopping(value));
    const greeted = await this.request('graphd/hello', { ...hello, protocol: PROTOCOL });
    await this.follow();
    this.see(await this.request('workgraph/asks', {}));
    return greeted;
  }

  /** Listen no longer. The connection is its owner's to end. */
  dispose(): void {
    this.handlers.splice(0).forEach((handler) => handler.dispose());
  }

  private on<M extends keyof ServerNotifications>(method: M, handler: (value: ServerNotifications[M]) => void): void {
    this.handlers.push(this.transport.onNotification(method, handler as (value: never) => void));
  }

  private async follow(): Promise<void> {
    const held = this.mirror.store ? { since: this.mirror.revs(), store: this.mirror.store } : {};
    const answer = await this.request('workgraph/subscribe', { ...held, activity: true });
    this.subscription = answer.subscription;
    this.mirror.start(answer.store, answer.graphs);
    answer.graphs.forEach((value) => this.listener.changed(value));
  }

  private changed(value: Changed): void {
    try {
      this.mirror.apply(value);
    } catch (broken) {
      if (!(broken instanceof ChainBroken)) {
        throw broken;
      }
      this.startAnew().catch(() => undefined); // the connection went: the next one starts from nothing
      return;
    }
    this.listener.changed(value);
  }

  /** A value that does not follow is never guessed at: the whole is asked for. */
  private async startAnew(): Promise<void> {
    const old = this.subscription;
    this.subscription = undefined;
    this.mirror.clear();
    if (old) {
      await this.request('workgraph/unsubscribe', { subscription: old });
      await this.follow();
    }
  }

  private noticed(notice: AsksNotice): void {
    notice.closed.forEach((closed) => this.asks.delete(closed.id));
    notice.opened.forEach((ask) => this.asks.set(ask.id, ask));
    this.listener.asks(notice.opened, notice.closed);
  }

  /** What is open now: some may have come and gone before we listened. */
  private see(open: readonly Ask[]): void {
    const fresh = open.filter((ask) => !this.asks.has(ask.id));
    fresh.forEach((ask) => this.asks.set(ask.id, ask));
    this.listener.asks(fresh, []);
  }
}
