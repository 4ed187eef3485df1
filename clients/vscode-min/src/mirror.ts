/** What is known of graphs by their `workgraph/changed` values. Knows neither an editor nor a connection. */

import type { Ask, Changed, Header } from 'graphd-protocol';

/** One graph at one rev, without its nodes: rows and pictures are the daemon's to draw. */
export interface Held {
  readonly rev: number;
  readonly header: Header;
  readonly asks: readonly Ask[];
  readonly proposals: readonly Record<string, unknown>[];
}

/** A change that does not follow on the rev held: subscribe again without `since`. */
export class ChainBroken extends Error {}

/** Folds changes by the rule of cursors: each says where it starts and ends. Source: spec protocol.md, Notifications. */
export class Mirror {
  private readonly held = new Map<string, Held>();
  private storeHeld: string | undefined;

  get graphs(): ReadonlyMap<string, Held> {
    return this.held;
  }

  /** The id of the database that the revs are of. */
  get store(): string | undefined {
    return this.storeHeld;
  }

  /** The rev held of each graph, as `since` takes it. */
  revs(): Record<string, number> {
    return Object.fromEntries([...this.held].map(([graph, held]) => [graph, held.rev]));
  }

  /** The answer to a subscription. What another store held is forgotten. */
  start(store: string, values: readonly Changed[]): void {
    if (store !== this.storeHeld) {
      this.held.clear();
    }
    this.storeHeld = store;
    values.forEach((value) => this.apply(value));
  }

  /** Fold one value in. Throws ChainBroken and has then changed nothing. */
  apply(changed: Changed): void {
    if (changed.cleared) {
      this.held.delete(changed.graph);
      return;
    }
    const before = changed.full ? undefined : this.held.get(changed.graph);
    const header = changed.header ?? before?.header;
    if (!header || (!changed.full && changed.from !== (before?.rev ?? 0))) {
      throw new ChainBroken(`${changed.graph}: a change from rev ${changed.from}, but rev ${before?.rev ?? 0} is held`);
    }
    this.held.set(changed.graph, {
      rev: changed.rev,
      header,
      asks: changed.asks ?? before?.asks ?? [],
      proposals: changed.proposals ?? before?.proposals ?? [],
    });
  }

  /** Forget everything. */
  clear(): void {
    this.held.clear();
    this.storeHeld = undefined;
  }
}
