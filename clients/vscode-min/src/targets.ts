/** What a command is about: a row, the argument of a lens, or what the user picks. */

import * as vscode from 'vscode';
import type { TreeRow } from 'graphd-protocol';
import type { Link } from './link';
import { Row } from './rows';

export interface Target {
  uri?: string;
  graph?: string;
  node?: string;
  attempt?: number;
  all?: boolean;
}

/** The target that a command's argument names; empty where it was called without one. */
export function targetOf(argument: unknown): Target {
  if (argument instanceof Row) {
    return argument.target;
  }
  if (argument instanceof vscode.Uri) {
    return { uri: argument.toString() };
  }
  return typeof argument === 'object' && argument !== null ? { ...(argument as Target) } : {};
}

interface Choice extends vscode.QuickPickItem {
  row: TreeRow;
}

/** Asks for a graph where the target names none. `verb`: only graphs that admit it now. Undefined: nothing was picked. */
export async function withGraph(link: Link, target: Target, title: string, verb?: string): Promise<(Target & { graph: string }) | undefined> {
  if (target.graph) {
    return { ...target, graph: target.graph };
  }
  const session = await link.ready();
  const rows = await session.request('workgraph/tree', {});
  const wanted = verb ? rows.filter((row) => row.commands.some((one) => one.command === `graphd.${verb}` && one.enabled)) : rows;
  const row = await pick(wanted, title, verb ? vscode.l10n.t('No graph can do that now.') : vscode.l10n.t('There is no graph in this workspace yet.'));
  return row && { ...target, graph: row.id };
}

/** Asks for a node too. `admits`: only nodes whose row it says yes to. */
export async function withNode(link: Link, target: Target, title: string, admits: (row: TreeRow) => boolean = () => true): Promise<(Target & { graph: string; node: string }) | undefined> {
  const found = await withGraph(link, target, title);
  if (!found) {
    return undefined;
  }
  if (found.node) {
    return { ...found, node: found.node };
  }
  const session = await link.ready();
  const rows = (await session.request('workgraph/tree', { graph: found.graph })).filter((row) => row.contextValue.startsWith('node.') && admits(row));
  const row = await pick(rows, title, vscode.l10n.t('No node of this graph can do that now.'));
  return row && { ...found, node: new Row(row, undefined).target.node ?? '' };
}

export function isEnabled(row: TreeRow, verb: string): boolean {
  return row.commands.some((one) => one.command === `graphd.${verb}` && one.enabled);
}

async function pick(rows: TreeRow[], title: string, none: string): Promise<TreeRow | undefined> {
  if (rows.length <= 1) {
    if (!rows.length) {
      void vscode.window.showInformationMessage(none);
    }
    return rows[0];
  }
  const items: Choice[] = rows.map((row) => ({ label: row.label, description: row.description, iconPath: new vscode.ThemeIcon(row.icon), row }));
  return (await vscode.window.showQuickPick(items, { title, matchOnDescription: true }))?.row;
}
