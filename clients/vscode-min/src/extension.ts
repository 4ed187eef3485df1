/** Where VS Code comes in: what there is, and which command does what. Nothing is connected before something is used. */

import * as vscode from 'vscode';
import { Asks } from './asks';
import { Changes } from './changes';
import { Documents } from './documents';
import { Link } from './link';
import { Looking } from './looking';
import { Panels } from './panel';
import { INSTALL_COMMAND } from './program';
import { messageOf } from './refusals';
import { Running } from './running';
import { Status } from './status';
import { Steering } from './steering';
import { Tree } from './tree';

/** What tests of the extension host look at. */
export interface Api {
  link: Link;
  tree: Tree;
}

let link: Link | undefined;

export function activate(context: vscode.ExtensionContext): Api {
  const log = vscode.window.createOutputChannel('graphd', { log: true });
  const trace = vscode.window.createOutputChannel('graphd (trace)');
  const made = (link = new Link(log, trace, String(context.extension.packageJSON.version)));
  const tree = new Tree(made);
  const documents = new Documents(made);
  const panels = new Panels(made, context.extensionUri);
  const asks = new Asks(made);
  context.subscriptions.push(log, trace, made, tree, documents, panels, asks, new Status(made, tree.view));
  context.subscriptions.push(...commands(made, asks, documents, panels, log));
  context.subscriptions.push(vscode.workspace.onDidGrantWorkspaceTrust(() => made.start()));
  context.subscriptions.push(vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration('graphd.path') && void made.restart()));
  context.subscriptions.push(vscode.workspace.onDidOpenTextDocument((document) => isWorkflow(document) && made.start()));
  void startWhereNeeded(made);
  return { link: made, tree };
}

export async function deactivate(): Promise<void> {
  await link?.stop();
}

/** A project that has workflows is connected; any other one when it is used. */
async function startWhereNeeded(made: Link): Promise<void> {
  const found = await vscode.workspace.findFiles('.agents/workflows/*.{yaml,yml}', null, 1);
  if (found.length || vscode.workspace.textDocuments.some(isWorkflow)) {
    made.start();
  }
}

function isWorkflow(document: vscode.TextDocument): boolean {
  return /\/(\.agents|graphd)\/workflows\/[^/]+\.ya?ml$/.test(document.uri.path);
}

function commands(made: Link, asks: Asks, documents: Documents, panels: Panels, log: vscode.LogOutputChannel): vscode.Disposable[] {
  const running = new Running(made);
  const steering = new Steering(made);
  const changes = new Changes(made);
  const looking = new Looking(made, documents);
  const handlers: Record<string, (argument: unknown) => unknown> = {
    run: (argument) => running.run(argument),
    pause: (argument) => steering.pause(argument),
    resume: (argument) => steering.resume(argument),
    step: (argument) => steering.step(argument),
    retry: (argument) => steering.retry(argument),
    retryNode: (argument) => steering.retryNode(argument),
    cancel: (argument) => steering.cancel(argument),
    finish: (argument) => steering.finish(argument),
    apply: (argument) => changes.apply(argument),
    accept: (argument) => changes.accept(argument),
    dismiss: (argument) => changes.dismiss(argument),
    openOutput: (argument) => looking.openOutput(argument),
    openTranscript: (argument) => looking.openTranscript(argument),
    diff: (argument) => looking.diff(argument),
    why: (argument) => looking.why(argument),
    answer: (argument) => asks.answer(argument),
    showGraph: (argument) => panels.show(argument),
    connect: () => made.start(),
    restart: () => made.restart(),
    showLogs: () => log.show(),
    trace: () => toggleTrace(made),
    install: () => install(),
  };
  return Object.entries(handlers).map(([name, handler]) => vscode.commands.registerCommand(`graphd.${name}`, (argument: unknown) => told(handler, argument, log)));
}

/** Refusals are said with what to do next; the command's result is undefined then. */
async function told(handler: (argument: unknown) => unknown, argument: unknown, log: vscode.LogOutputChannel): Promise<unknown> {
  try {
    return await handler(argument);
  } catch (trouble) {
    log.warn(messageOf(trouble));
    void vscode.window.showErrorMessage(messageOf(trouble));
    return undefined;
  }
}

let isTracing = false;

async function toggleTrace(made: Link): Promise<void> {
  isTracing = !isTracing;
  await made.setTrace(isTracing);
  vscode.window.setStatusBarMessage(isTracing ? vscode.l10n.t('graphd: every message is written to the trace channel') : vscode.l10n.t('graphd: the trace is off'), 5000);
}

/** The line stands in a terminal, not typed for anybody: it is the user's machine. */
function install(): void {
  const terminal = vscode.window.createTerminal('graphd');
  terminal.show();
  terminal.sendText(INSTALL_COMMAND, false);
}
