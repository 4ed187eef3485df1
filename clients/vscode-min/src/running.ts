/** Starting graphs: a workflow by its name or its file, its inputs asked for, its text saved first. */

import { randomUUID } from 'node:crypto';
import * as vscode from 'vscode';
import type { DeclaredInput, SetParams, WorkflowEntry } from 'graphd-protocol';
import type { Link } from './link';
import { factsOf, isRefused } from './refusals';
import { targetOf } from './targets';

export class Running {
  constructor(private readonly link: Link) {}

  /** Run what a lens or an editor names, else what is picked. Answers with the graph's id. */
  async run(argument: unknown): Promise<string | undefined> {
    const { uri } = targetOf(argument);
    if (!uri) {
      return this.pickAndRun();
    }
    const file = vscode.Uri.parse(uri);
    return (await saved(file)) ? this.start({ file: file.fsPath }) : undefined;
  }

  private async pickAndRun(): Promise<string | undefined> {
    const session = await this.link.ready();
    const entries = await session.request('workgraph/workflows', {});
    const items = entries.map((entry) => ({ label: entry.name, description: SOURCES[entry.source](), detail: entry.isValid ? entry.title : vscode.l10n.t('$(error) this file has errors'), entry }));
    const chosen = await vscode.window.showQuickPick(items, { title: vscode.l10n.t('Run a workflow'), placeHolder: vscode.l10n.t('The name of a workflow'), matchOnDetail: true });
    if (!chosen || !(await saved(vscode.Uri.file(chosen.entry.path)))) {
      return undefined;
    }
    const inputs = await this.askFor(chosen.entry, Object.keys(chosen.entry.inputs));
    return inputs && this.start({ workflow: chosen.entry.name, inputs });
  }

  /** Sets the graph; where inputs are missing they are asked for, once. */
  private async start(params: SetParams): Promise<string | undefined> {
    const session = await this.link.ready();
    try {
      return (await session.request('workgraph/set', { ...params, requestId: randomUUID() })).graph;
    } catch (trouble) {
      const missing = factsOf(trouble).inputs;
      if (!isRefused(trouble, 'inputMissing') || !missing || params.inputs) {
        throw trouble;
      }
      const entries = await session.request('workgraph/workflows', {});
      const inputs = await this.askFor(entries.find((entry) => entry.path === params.file), missing);
      return inputs && this.start({ ...params, inputs });
    }
  }

  private async askFor(entry: WorkflowEntry | undefined, names: string[]): Promise<Record<string, unknown> | undefined> {
    const inputs: Record<string, unknown> = {};
    for (const name of names) {
      const said = await askForInput(name, entry?.inputs[name]);
      if (said === undefined) {
        return undefined;
      }
      inputs[name] = said;
    }
    return inputs;
  }
}

const SOURCES = {
  workspace: () => vscode.l10n.t('of this workspace'),
  user: () => vscode.l10n.t('yours'),
  bundled: () => vscode.l10n.t('bundled'),
};

async function askForInput(name: string, declared: DeclaredInput | undefined): Promise<unknown> {
  const title = vscode.l10n.t('Input {0}', name);
  const choices = declared?.enum?.map(String) ?? (declared?.type === 'boolean' ? ['true', 'false'] : undefined);
  const said = choices
    ? await vscode.window.showQuickPick(choices, { title, placeHolder: declared?.description })
    : await vscode.window.showInputBox({ title, prompt: declared?.description, value: declared?.default === undefined || declared.default === null ? '' : String(declared.default), ignoreFocusOut: true, validateInput: (text) => (isNumeric(declared) && text.trim() !== '' && Number.isNaN(Number(text)) ? vscode.l10n.t('a number is wanted') : undefined) });
  if (said === undefined) {
    return undefined;
  }
  return declared?.type === 'boolean' ? said === 'true' : isNumeric(declared) ? Number(said) : said;
}

function isNumeric(declared: DeclaredInput | undefined): boolean {
  return declared?.type === 'integer' || declared?.type === 'number';
}

/** A run uses the saved file: save it where it was changed. False where that did not come to be. */
export async function saved(uri: vscode.Uri): Promise<boolean> {
  const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString());
  return !document?.isDirty || document.save();
}
