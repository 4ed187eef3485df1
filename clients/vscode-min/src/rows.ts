/** The rows of the tree as they were drawn last, and what has to be drawn again. Knows no editor. */

import type { TreeParams, TreeRow } from 'graphd-protocol';

/** One row that stays the same object for as long as its id is there. `below` is undefined until it was opened. */
export class Row {
  below: Row[] | undefined;
  /** The question that it was drawn with. */
  ask: string | undefined;

  constructor(
    public said: TreeRow,
    readonly above: Row | undefined,
  ) {}

  get id(): string {
    return this.said.id;
  }

  /** What `workgraph/tree` takes to open this row; undefined where it has nothing below. */
  get params(): TreeParams | undefined {
    const [graph, rest] = split(this.id);
    if (rest === undefined) {
      return { graph };
    }
    return rest && !rest.includes('@') ? { graph, node: rest } : undefined;
  }

  /** The graph, node and attempt that it stands for. */
  get target(): { graph: string; node?: string; attempt?: number } {
    const [graph, rest] = split(this.id);
    const [node, attempt] = (rest ?? '').split('@');
    return { graph, ...(node ? { node } : {}), ...(attempt ? { attempt: Number(attempt) } : {}) };
  }
}

function split(id: string): [string, string | undefined] {
  const at = id.indexOf('/');
  return at < 0 ? [id, undefined] : [id.slice(0, at), id.slice(at + 1)];
}

/** Rows anew: those that stay keep their object. `moved` says whether there are others, or in another order. */
export function renewed(before: readonly Row[] | undefined, said: readonly TreeRow[], above: Row | undefined): { rows: Row[]; changed: Row[]; moved: boolean } {
  const known = new Map(before?.map((row) => [row.id, row]));
  const changed: Row[] = [];
  const rows = said.map((one) => {
    const row = known.get(one.id);
    if (!row) {
      return new Row(one, above);
    }
    if (JSON.stringify(row.said) !== JSON.stringify(one)) {
      row.said = one;
      changed.push(row);
    }
    return row;
  });
  const moved = rows.length !== before?.length || rows.some((row, index) => row !== before[index]);
  return { rows, changed, moved };
}
