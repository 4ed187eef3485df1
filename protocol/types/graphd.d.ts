// Written by `make generate` from protocol/protocol.json. Fields that say nothing are left out of results.

/** `workgraph/accept`; where `graph` is left out, in the graph that has the proposal. */
export interface AcceptParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
  proposal: string;
}

/** `workgraph/acknowledge`: these are not sent again. Repeating it is harmless. */
export interface AcknowledgeParams {
  deliveries: string[];
}

/** All that are acknowledged now. */
export interface AcknowledgeResult {
  deliveries: string[];
}

/** `workgraph/activity`. */
export interface Activity {
  graph: string;
  nodes: NodeActivity[];
}

/** Who caused an event. */
export interface Actor {
  kind: ActorKind;
  client?: string | null;
  attempt?: string | null;
}

export type ActorKind = "person" | "agent" | "attempt" | "daemon" | "policy";

/** One profile. */
export interface AgentEntry {
  name: string;
  driver: string;
  installed: boolean;
  version?: string | null;
  path?: string | null;
  /** Folders of PATH that were looked through. */
  searched: string[];
  /** What it answered to `initialize`, where it was asked. */
  capabilities?: Record<string, unknown> | null;
  /** What it tells of its usage. */
  reports: Reports;
  install: string;
  login: string;
  /** Whether it runs in our continuous tests, or was only measured and written down. */
  standing: "tested" | "documented";
  /** The version that the profile was measured with. */
  measured?: string | null;
  /** Workers that it serves now, for this caller. */
  workers?: string[];
  problems: string[];
}

/** `workgraph/agents`. Programs are started with `probe` alone, which asks each for its version and capabilities. */
export interface AgentsParams {
  probe?: boolean;
}

/** `workgraph/apply`: the plan in a file against the graph that was started from it; answers with a proposal. */
export interface ApplyParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
  file: string;
  /** The bytes of the file as they were read. */
  text?: string | null;
}

/** A person is asked before the node takes a slot. */
export interface Approval {
  prompt: string;
  /** The answer where nobody can be asked. */
  default?: "allow" | "deny" | null;
}

/** A person is asked before the node takes a slot. */
export interface ApprovalInput {
  prompt?: string;
  /** The answer where nobody can be asked. */
  default?: "allow" | "deny" | null;
}

/** A question that waits for an answer. */
export interface Ask {
  id: string;
  kind: AskKind;
  graph?: string | null;
  node?: string | null;
  attempt?: number | null;
  title: string;
  action: Record<string, unknown>;
  actionHash: string;
  options: Record<string, string>[];
  scopes: string[];
  openedAt: number;
  deadlineAt?: number | null;
  /** The option that the deadline brings. */
  default?: string | null;
  state: AskState;
  answeredBy?: string | null;
  /** The answer, where it was one of the options. */
  option?: string | null;
  text?: string | null;
  scope?: string | null;
  comment?: string | null;
  /** What an answer for the attempt or the graph would cover: a tool kind and a glob. */
  rule?: string | null;
}

/** An ask that needs no answer any more. Without `by` it was withdrawn. */
export interface AskClosed {
  id: string;
  by?: string | null;
  answer?: string | null;
}

export type AskKind = "permission" | "question" | "escalation" | "approval" | "trust" | "proposal";

/** `workgraph/askParent`: a question to people. The same words again wait for the same answer. */
export interface AskParentParams {
  question: string;
  /** Left out: `askParentSeconds` of the settings. */
  waitMs?: number | null;
}

/** Without `answer` nobody has answered yet (`open`), or nobody will (`answered` by a rule, `withdrawn`). */
export interface AskParentResult {
  ask: string;
  state: AskState;
  answer?: string | null;
  answeredBy?: string | null;
}

export type AskState = "open" | "answered" | "withdrawn";

/** `workgraph/asks`: questions that came and went since the last one. */
export interface AsksNotice {
  opened: Ask[];
  closed: AskClosed[];
}

/** `workgraph/asks`: the open ones, oldest first, unless said otherwise. */
export interface AsksParams {
  graph?: string | null;
  /** `standing`: answers for an attempt or a graph that were not revoked. */
  state?: "open" | "answered" | "withdrawn" | "standing";
}

/** One try of a node. */
export interface Attempt {
  /** slug@number, or slug.role@number of one that is no worker's */
  id: string;
  graph: string;
  node: string;
  role: Role;
  number: number;
  state: AttemptState;
  outcome?: AttemptOutcome | null;
  failureClass?: FailureClass | null;
  reason?: string | null;
  exitCode?: number | null;
  signal?: number | null;
  worker: string;
  profile: string;
  pid?: number | null;
  keeperPid?: number | null;
  /** Processes whose death cannot be proven. */
  stuckPids?: number[];
  startedAt: number;
  endedAt?: number | null;
  deadlineAt?: number | null;
  waitedS?: Waited | null;
  /** The rest of the graph's budget, where that was all that there was for it. */
  limit?: Budget | null;
  spent: Spent;
  /** It counts against `limits.attemptsPerNode`. */
  isCounted: boolean;
}

export type AttemptOutcome = "achieved" | "not_achieved" | "failed" | "cancelled" | "paused" | "lost" | "put_back";

export type AttemptState = "starting" | "live" | "stopping" | "stuck" | "settled";

/** One param that does not fit. */
export interface BadField {
  path: string;
  message: string;
  expected: string;
  got: string;
  suggestions?: string[];
}

/** What a graph may use over its life; what is left out is not bounded. */
export interface Budget {
  tokens?: number | null;
  costUsd?: number | null;
  wallSeconds?: number | null;
}

/** What a graph may use over its life; what is left out is not bounded. */
export interface BudgetInput {
  tokens?: number | null;
  costUsd?: number | null;
  wallSeconds?: number | null;
}

/** `workgraph/cancel`. */
export interface CancelParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
  reason?: string | null;
}

/** `$/cancelRequest`. */
export interface CancelRequestParams {
  id: number | string;
}

/** `graphd/capacity`. */
export interface Capacity {
  /** Something more would start now. */
  available: boolean;
  /** Why not. */
  reasons: string[];
  concurrency: Slots;
  limits: CapacityLimits;
  budgets: GraphBudget[];
  /** How many attempts run, by profile. */
  agents: Record<string, number>;
}

/** Limits of the whole daemon. */
export interface CapacityLimits {
  concurrency: number;
}

/** `workgraph/changed`: all that changed after `from`, up to `rev`. */
export interface Changed {
  operation: string;
  graph: string;
  /** The rev that the client holds. */
  from: number;
  rev: number;
  header?: Header | null;
  /** Whole nodes that changed: merge them by slug. */
  nodes?: Node[] | null;
  asks?: Ask[] | null;
  proposals?: Record<string, unknown>[] | null;
  /** Entries since `from`. */
  history?: HistoryEntry[] | null;
  /** `nodes` holds every node: forget what is held. */
  full?: boolean | null;
  /** The graph is gone. */
  cleared?: Tombstone | null;
}

/** A node that is defined anew. */
export interface ChangedNode {
  node: string;
  /** Which keys of it differ. */
  fields: string[];
}

/** One line of the doctor. */
export interface Check {
  id: string;
  ok: boolean;
  detail: string;
  fix: string;
}

/** `workgraph/clear`. */
export interface ClearParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
}

/** Who connects. */
export interface Client {
  name: string;
  version: string;
  pid?: number | null;
}

/** One connection as health shows it. */
export interface ConnectionHealth {
  client: string;
  principal: string;
  bytesInFlight: number;
  framesInFlight: number;
}

/** Which daemon answers. */
export interface Daemon {
  version: string;
  pid: number;
  startedAt: number;
  epoch: number;
}

/** An input that a workflow takes; without a default it must be given. */
export interface DeclaredInput {
  type: string;
  description: string;
  default?: unknown;
  enum?: unknown[];
}

/** `workgraph/deliveries`: what an owner has not acknowledged yet. */
export interface DeliveriesParams {
  owner?: string | null;
  after?: string | null;
  /** Wait so long for one where there is none. */
  waitMs?: number;
}

/** Oldest first; `next` is what to ask after. */
export interface DeliveriesResult {
  deliveries: Delivery[];
  next?: string | null;
}

/** A result that waits for its owner's acknowledgement. */
export interface Delivery {
  id: string;
  owner: string;
  graph: string;
  node?: string | null;
  kind: DeliveryKind;
  text: string;
  createdAt: number;
}

export type DeliveryKind = "result" | "failure" | "escalation" | "end";

/** What is wrong with a workflow, where, and what to do. */
export interface Diagnostic {
  severity: "error" | "warning";
  code: string;
  path: string;
  range: Range;
  message: string;
  hint: string;
}

/** `workgraph/diff`: what an attempt changed; without `attempt` the last one. */
export interface DiffParams {
  graph?: string | null;
  node: string;
  attempt?: number | null;
}

/** A patch as `git apply` takes it, binary files apart, which it only names; `""` where nothing changed. */
export interface DiffResult {
  patch: string;
  shared: RanBeside[];
}

/** `workgraph/dismiss`; where `graph` is left out, in the graph that has the proposal. */
export interface DismissParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
  proposal: string;
  reason?: string | null;
}

/** `graphd/doctor`: `report` adds rows that help whoever reads a bug report, free of users' text. */
export interface DoctorParams {
  report?: boolean;
}

/** From a node to one that needs it, always downwards. */
export interface DrawnEdge {
  from: string;
  to: string;
  /** A line from the lower edge of `from` to the upper edge of `to`. */
  points: [number, number][];
}

/** No params. */
export interface Empty {
}

/** `data` of an error. Which of the facts are there depends on the code; there may be more than these. */
export interface ErrorFacts {
  /** The same request may succeed later. */
  retryable: boolean;
  /** A name from the table of errors, for all errors of ours. */
  code?: string | null;
  /** What to do, or to type, next. */
  hint?: string | null;
  graph?: string | null;
  node?: string | null;
  from?: string | null;
  to?: string | null;
  rev?: number | null;
  planVersion?: number | null;
  suggestions?: string[];
  /** Of −32602. */
  fields?: BadField[];
  /** Of `ambiguous`: what the name may mean, as `{id, title, status}`. */
  graphs?: Record<string, unknown>[];
  /** Of `invalidPlan`: for files as `validate` finds them, for inline nodes `{code, slug, message, hint}`. */
  diagnostics?: Record<string, unknown>[];
  /** Of `inputMissing`. */
  inputs?: string[];
  [fact: string]: unknown;
}

/** One entry of the log. */
export interface Event {
  graph: string;
  rev: number;
  /** Its place within the rev. */
  index: number;
  at: number;
  kind: string;
  node?: string | null;
  payload: Record<string, unknown>;
  actor: Actor;
}

/** `workgraph/explain`: the compiled nodes, layer by layer. */
export interface ExplainResult {
  title: string;
  objective: string;
  /** What the graph has beside its nodes, where it is not at its default; in the words of a workflow file. */
  config?: Record<string, unknown> | null;
  /** The same for nodes, everything written out. */
  nodes: Record<string, unknown>[];
  /** What can run together. */
  waves: string[][];
  warnings: Diagnostic[];
}

/** `workgraph/export`. */
export interface ExportParams {
  graph?: string | null;
  /** 1 refuses what it has no words for. */
  version?: 1 | 2;
}

/** `workgraph/change` lines, each one JSON text. */
export interface ExportResult {
  lines: string[];
}

/** `workgraph/extend`. */
export interface ExtendParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
  nodes: NodeParams[];
}

/** `workgraph/extendTimeout`. */
export interface ExtendTimeoutParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
  node: string;
  /** How much longer it may work. */
  byMs: number;
}

/** Why a node failed. */
export interface Failure {
  class: FailureClass;
  reason: string;
  attempt?: string | null;
}

export type FailureClass = "exec_failed" | "timeout" | "verdict_fail" | "merge_failed" | "limit" | "refused" | "agent_missing" | "lost";

/** `workgraph/finish`. */
export interface FinishParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
  reason: string;
}

/** One node per item of a list. */
export interface ForEach {
  in: string;
  as: string;
  max: number;
}

/** One node per item of a list. */
export interface ForEachInput {
  in: string;
  as: string;
  max?: number;
}

/** The node's output is a verdict; REVISE sends the path from `revise` back. */
export interface Gate {
  revise?: string | null;
  maxRevisions: number;
}

/** The node's output is a verdict; REVISE sends the path from `revise` back. */
export interface GateInput {
  revise?: string | null;
  maxRevisions?: number;
}

/** What a graph may use, has used, and has set aside. */
export interface GraphBudget {
  graph: string;
  limit: Record<string, number>;
  spent: Record<string, number>;
  reserved: Record<string, number>;
}

/** Names a graph by id, unique prefix, workflow name (its latest run) or `@last`. */
export interface GraphParams {
  graph?: string | null;
}

export type GraphStatus = "active" | "user_paused" | "infra_paused" | "blocked" | "budget_limited" | "complete" | "cancelled";

/** `graphd/handover`: a newer version asks for the workspace; the daemon stops, and its children go on. */
export interface HandoverParams {
  version: string;
  /** The lowest and the highest number that the newer one speaks. */
  protocol: number[];
}

/** A graph without its nodes. */
export interface Header {
  id: string;
  owner?: string | null;
  title: string;
  objective: string;
  status: GraphStatus;
  pauseReason?: string | null;
  outcome?: Outcome | null;
  stopping?: Stopping | null;
  /** The one node that may start, until it is settled. */
  stepping?: string | null;
  planVersion: number;
  rev: number;
  /** How many nodes are in each state; states without any are left out. */
  counts: Record<string, number>;
  spent: Spending;
  limits: Limits;
  budget?: Budget | null;
  /** Left out where they are the usual ones. */
  terms?: Terms | null;
  workspace: string;
  source: Source;
  /** Its output is the graph's result. */
  deliveryNode?: string | null;
  createdAt: number;
  updatedAt: number;
}

/** `graphd/health`. */
export interface Health {
  store: "ok" | "full" | "readOnly";
  loopLagMs: number;
  connections: ConnectionHealth[];
  epoch: number;
  starts: number;
  pid: number;
  version: string;
  socket: string;
  workspace: string;
  rssBytes: number;
}

/** `graphd/hello`. Read by hand in the server (it answers without pydantic); a test holds both to each other. */
export interface HelloParams {
  client: Client;
  /** The lowest and the highest number that the client speaks. */
  protocol: [number, number];
  workspace?: string | null;
  cwd?: string | null;
  /** What children of graphs set on this connection get of it is allow-listed. */
  env?: Record<string, string> | null;
  interactive?: boolean | null;
  locale?: string | null;
  owner?: Owner | null;
  attemptToken?: string | null;
}

/** What was agreed. */
export interface HelloResult {
  protocol: number;
  daemon: Daemon;
  /** The database's id: revs of another store mean nothing here. */
  store: string;
  workspace: string;
  principal: "attempt" | "agent" | "user";
  limits: WireLimits;
}

/** One line of the last 64. */
export interface HistoryEntry {
  at: number;
  rev: number;
  kind: string;
  node?: string | null;
  detail?: string | null;
}

/** `workgraph/history`: events after a rev. */
export interface HistoryParams {
  graph?: string | null;
  after?: number;
  limit?: number;
  kinds?: string[] | null;
}

/** Whole revs only; `next` is the rev to ask after. */
export interface HistoryResult {
  events: Event[];
  next?: number | null;
}

/**
 * How to open the session that is held: a program's words, and where it has to stand.
 *
 * Whoever starts it locks `sessionLock` (flock, exclusive) before, and hands the descriptor on to it: the node then
 * waits for the program's end, whatever becomes of this connection.
 */
export interface HoldResult {
  childSession: string;
  cwd: string;
  argv: string[];
  sessionLock?: string | null;
}

/** `workgraph/import`: lines of an export; the last change counts. An active graph becomes user_paused. */
export interface ImportParams {
  lines: string[];
  /** Left out: the owner that the lines name. */
  owner?: string | null;
  /** Make another graph of it, where its own id is taken. */
  newId?: boolean;
  requestId?: string | null;
  dryRun?: boolean;
  settle?: boolean;
}

/** A node that a `forEach` node made: whose, which (from 1), and the item as JSON. */
export interface Item {
  of: string;
  index: number;
  value: string;
}

/** Bounds of one graph. */
export interface Limits {
  concurrency: number;
  maxNodes: number;
  attemptsPerNode: number;
  roundsPerAttempt: number;
  replans: number;
  timeoutExtensions: number;
}

/** Bounds of one graph. */
export interface LimitsInput {
  concurrency?: number;
  maxNodes?: number;
  attemptsPerNode?: number;
  roundsPerAttempt?: number;
  replans?: number;
  timeoutExtensions?: number;
}

/** `workgraph/list`, newest first. */
export interface ListParams {
  status?: GraphStatus | "live" | null;
  owner?: string | null;
  after?: string | null;
  limit?: number;
}

/** Headers. */
export interface ListResult {
  graphs: Header[];
  next?: string | null;
}

/** A node whose state changes at once. */
export interface MovedNode {
  node: string;
  origin: NodeState;
  state: NodeState;
}

/** What a mutation answers, after its commit. */
export interface MutationResult {
  graph: string;
  rev: number;
  /** Nodes whose processes have still to end. */
  stopping?: string[] | null;
  preview?: Snapshot | null;
  /** What edits of the plan come to; of a dry run, and of `apply`. */
  diff?: PlanDiff | null;
  /** What waits to be accepted. */
  proposal?: string | null;
}

/** One node as the snapshot shows it. */
export interface Node {
  id: string;
  slug: string;
  title: string;
  spec: string;
  worker: string;
  needs: string[];
  condition?: string | null;
  /** Where it fails, what needs it is blocked. */
  required: boolean;
  state: NodeState;
  phase?: Phase | null;
  /** Counted ones; numbers run on. */
  attempts: number;
  rounds: number;
  output?: Output | null;
  failure?: Failure | null;
  skip?: SkipReason | null;
  cancelReason?: string | null;
  blockedBy?: string | null;
  /** The plan version that took it out of the plan; views hide it. */
  removedIn?: number | null;
  childSession?: string | null;
  discoveredFrom?: string[];
  timeoutMs: number;
  retry: Retry;
  reportToParent: boolean;
  priority: number;
  gate?: Gate | null;
  verify?: Verify | null;
  outputSchema?: Record<string, unknown> | null;
  approval?: Approval | null;
  wait?: Wait | null;
  forEach?: ForEach | null;
  item?: Item | null;
  review?: Review | null;
  artifacts?: string[];
  writes?: string[];
  isolation?: "none" | "graph" | "node" | null;
  permissions?: Permissions | null;
  model?: string | null;
  thinking?: string | null;
  mode?: string | null;
  maxToolCalls?: number | null;
  unattendedExtensions?: number | null;
  /** Of a gate. */
  verdict?: Verdict | null;
  /** What the gate said that sent this work back. */
  findings?: string | null;
  /** When what it waits for is due, or has taken too long. */
  wakeAt?: number | null;
  /** It is tried again then. */
  notBefore?: number | null;
  /** The rev of its last change. */
  changedAt: number;
  startedAt?: number | null;
  endedAt?: number | null;
  spent: Spent;
}

/** Volatile: moves no rev. */
export interface NodeActivity {
  node: string;
  attempt: number;
  phase: Phase;
  since: number;
  lastLine?: string | null;
  /** When the rest of its provider is over. */
  coolDownUntil?: number | null;
}

/** A node given inline to `set`. */
export interface NodeParams {
  slug: string;
  spec?: string;
  title?: string;
  /** Default: `shell`; nobody for a node that waits. */
  worker?: string | null;
  needs?: string[];
  condition?: string | null;
  required?: boolean;
  timeoutMs?: number;
  hardTimeoutMs?: number | null;
  retry?: RetryInput;
  onLost?: OnLost;
  priority?: number;
  inputMapping?: Record<string, string>;
  reportToParent?: boolean;
  gate?: GateInput | null;
  verify?: VerifyInput | null;
  outputSchema?: Record<string, unknown> | null;
  approval?: boolean | ApprovalInput | null;
  /** A node that waits has no spec and no worker. */
  wait?: WaitInput | null;
  forEach?: ForEachInput | null;
  review?: ReviewInput | null;
  artifacts?: string[];
  writes?: string[];
  isolation?: "none" | "graph" | "node" | null;
  permissions?: Permissions | null;
  model?: string | null;
  thinking?: "low" | "medium" | "high" | "max" | null;
  mode?: string | null;
  maxToolCalls?: number | null;
  unattendedExtensions?: number | null;
}

/** A change of one node: the keys that are sent, beside the name; null puts one back to its default. */
export interface NodePatch {
  slug: string;
  spec?: string;
  title?: string;
  /** Default: `shell`; nobody for a node that waits. */
  worker?: string | null;
  needs?: string[];
  condition?: string | null;
  required?: boolean;
  timeoutMs?: number;
  hardTimeoutMs?: number | null;
  retry?: RetryInput;
  onLost?: OnLost;
  priority?: number;
  inputMapping?: Record<string, string>;
  reportToParent?: boolean;
  gate?: GateInput | null;
  verify?: VerifyInput | null;
  outputSchema?: Record<string, unknown> | null;
  approval?: boolean | ApprovalInput | null;
  /** A node that waits has no spec and no worker. */
  wait?: WaitInput | null;
  forEach?: ForEachInput | null;
  review?: ReviewInput | null;
  artifacts?: string[];
  writes?: string[];
  isolation?: "none" | "graph" | "node" | null;
  permissions?: Permissions | null;
  model?: string | null;
  thinking?: "low" | "medium" | "high" | "max" | null;
  mode?: string | null;
  maxToolCalls?: number | null;
  unattendedExtensions?: number | null;
}

/** Names a node of a graph. */
export interface NodeRef {
  graph?: string | null;
  node: string;
}

/** `workgraph/node`. */
export interface NodeResult {
  node: Node;
  attempts: Attempt[];
  deliveries: Delivery[];
}

export type NodeState = "waiting" | "ready" | "running" | "achieved" | "failed" | "blocked" | "skipped" | "cancelled";

/** `workgraph/observe`: what an attempt printed, from a cursor of an earlier answer. */
export interface ObserveParams {
  graph?: string | null;
  node: string;
  attempt?: number | null;
  cursor?: string | null;
  limit?: number;
}

/** Items, where to go on, and whether more can come. */
export interface ObserveResult {
  items: ObservedItem[];
  cursor: string;
  live: boolean;
  attempt: number;
}

/** One piece of an attempt's life. */
export interface ObservedItem {
  kind: "text" | "thought" | "tool" | "ask" | "plan" | "usage";
  at: number;
  text?: string | null;
  tool?: string | null;
}

export type OnLost = "resume" | "pause" | "fail";

export type Outcome = "ok" | "withFailures" | "rejected";

/** A node's result. In snapshots `text` is cut at 4 KiB; `workgraph/output` reads all of it. */
export interface Output {
  text: string;
  /** Bytes of the whole result. */
  total: number;
  mediaType: string;
  isCut: boolean;
}

/** `workgraph/output` as a notification; `skipped` says how many bytes a slow client missed. */
export interface OutputChunk {
  graph: string;
  node: string;
  attempt: number;
  offset: number;
  text: string;
  skipped?: number | null;
}

/** `workgraph/output`: bytes `offset` … of a captured result. */
export interface OutputParams {
  graph?: string | null;
  node: string;
  attempt?: number | null;
  offset?: number;
  limit?: number;
}

/** A slice of an output; offsets are bytes, cut at character borders. */
export interface OutputResult {
  text: string;
  offset: number;
  /** The offset to go on from: what the bytes of `text` say only where they are valid UTF-8. */
  next: number;
  total: number;
  mediaType: string;
}

/** The parent agent that this connection speaks for. */
export interface Owner {
  id: string;
  mode?: "auto" | "ask" | "off" | null;
}

/** `workgraph/pause`. */
export interface PauseParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
  mode?: "drain" | "stop";
  settleSeconds?: number | null;
  reason?: string | null;
}

export type Permissions = "read" | "edit" | "full";

export type Phase = "starting" | "adopting" | "resuming" | "working" | "awaiting_permission" | "awaiting_input" | "verifying" | "merging" | "joining" | "stopping" | "stuck" | "queued" | "cooling_down";

/** A layered drawing, and its twin in words. */
export interface Picture {
  graph: string;
  rev: number;
  width: number;
  height: number;
  /** Slugs from left to right, top layer first. */
  layers: string[][];
  nodes: PlacedNode[];
  edges: DrawnEdge[];
  /** So many nodes are not drawn. */
  hidden: number;
  /** One line a node, with its state and what it needs, layer by layer: for screen readers and terminals. */
  text: string;
  /** The same in box characters, where it fits into 120 columns. */
  drawing?: string | null;
}

/** `workgraph/picture`: a graph of more than `maxNodes` nodes is drawn around what runs and what failed. */
export interface PictureParams {
  graph?: string | null;
  maxNodes?: number;
}

/** A box: `x` and `y` are its upper left corner, in units of about a pixel. */
export interface PlacedNode {
  /** The node's slug. */
  id: string;
  x: number;
  y: number;
  w: number;
  h: number;
  label: string;
  state: NodeState;
}

/** What becomes of a plan, by slug. */
export interface PlanDiff {
  added?: string[];
  changed?: ChangedNode[];
  removed?: RemovedNode[];
  stopped?: StoppedNode[];
  moved?: MovedNode[];
  /** At rest, and no longer in the file: what is done stays. */
  kept?: string[];
}

/** Zero-based line and character, in UTF-16 code units as LSP counts. */
export interface Position {
  line: number;
  character: number;
}

/** One process tree that we keep. */
export interface ProcessEntry {
  graph: string;
  node?: string | null;
  attempt: number;
  role: Role;
  pid?: number | null;
  startedAt: number;
  rssBytes: number;
  cpuS: number;
  keeperPid?: number | null;
  state: AttemptState;
}

/** A node that is taken out of a workflow at its start, and why. */
export interface Pruned {
  node: string;
  reason: string;
}

/** `workgraph/purge`: one ended graph, or all that ended so long ago. */
export interface PurgeParams {
  graph?: string | null;
  olderThanDays?: number | null;
  /** Remove only what attempts left on the disk; the graphs stay. */
  transcripts?: boolean;
}

/** What was removed. */
export interface PurgeResult {
  graphs: string[];
  bytes: number;
}

/** An attempt of another node that ran in the same tree at the same time: a patch may hold its changes too. */
export interface RanBeside {
  graph: string;
  node: string;
  attempt: number;
}

/** From start to end, the end excluded. */
export interface Range {
  start: Position;
  end: Position;
}

/** `workgraph/readInput`: bytes `offset` … of one of the attempt's inputs. */
export interface ReadInputParams {
  name: string;
  offset?: number;
  limit?: number;
}

/** A slice of an input; offsets are bytes, cut at character borders. */
export interface ReadInputResult {
  text: string;
  offset: number;
  /** The offset to go on from. */
  next: number;
  total: number;
}

/** `workgraph/release`: names exactly the pids that the stuck attempt shows. */
export interface ReleaseParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
  node: string;
  pids: number[];
}

/** A node that leaves the plan, and why. */
export interface RemovedNode {
  node: string;
  reason: string;
}

/** `workgraph/replan`: all of it happens as one plan version, or nothing. */
export interface ReplanParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
  add?: NodeParams[];
  change?: NodePatch[];
  remove?: RemovedNode[];
  /** With every node that read their output. */
  restart?: string[];
  /** They stay in the plan, and may be retried. */
  cancelNodes?: string[];
  /** A paused graph goes on. */
  resume?: boolean;
  reason?: string | null;
}

/** `workgraph/reportDiscovery`: work that should be done too. The same title of the same attempt is the same. */
export interface ReportDiscoveryParams {
  title: string;
  spec: string;
  needs?: string[];
}

/** The proposal that waits for a person, or was settled already. */
export interface ReportDiscoveryResult {
  proposal: string;
}

/** `workgraph/reportProgress`: for people's eyes, never for decisions. */
export interface ReportProgressParams {
  text: string;
}

export type Reports = "tokens" | "cost" | "both" | "none" | "not_applicable";

/** `workgraph/rerun`: the plan as the graph has it now, as a new graph. */
export interface RerunParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
  start?: boolean;
}

/** `workgraph/respond`: the first valid answer counts. `actionHash` binds it to what was shown. */
export interface RespondParams {
  /** Its id, or the beginning of one. */
  ask: string;
  actionHash: string;
  option?: string | null;
  text?: string | null;
  scope?: "once" | "attempt" | "graph";
  comment?: string | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  dryRun?: boolean;
  settle?: boolean;
}

/** `workgraph/resume`. */
export interface ResumeParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
  /** The budget becomes what is spent and this, in the units that it has. */
  topUp?: BudgetInput | null;
}

/** Automatic retries. */
export interface Retry {
  max: number;
  backoffS: number;
  on: FailureClass[];
}

/** Automatic retries. */
export interface RetryInput {
  max?: number;
  backoffS?: number;
  on?: FailureClass[];
}

/** `workgraph/retry`: one node, or all. */
export interface RetryParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
  node?: string | null;
  all?: boolean;
}

/** The node's place in a review. */
export interface Review {
  phase: "design" | "diff";
  implementationNodeId?: string | null;
  verificationNodeId?: string | null;
}

/** The node's place in a review. */
export interface ReviewInput {
  phase: "design" | "diff";
  implementationNodeId?: string | null;
  verificationNodeId?: string | null;
}

/** `workgraph/revoke`: a standing answer covers nothing more. */
export interface RevokeParams {
  ask: string;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  dryRun?: boolean;
  settle?: boolean;
}

export type Role = "worker" | "verifier" | "planner" | "judge" | "hook" | "aside";

/** `workgraph/save`: writes `.agents/workflows/NAME.yaml` in the workspace. */
export interface SaveParams {
  graph?: string | null;
  name: string;
  /** Put it in the place of a file that is there. */
  force?: boolean;
  /** Answer with the text, write nothing. */
  dryRun?: boolean;
}

/** The file, and what it says. */
export interface SaveResult {
  path: string;
  text: string;
}

/**
 * `workgraph/set`: exactly one of workflow, file, text and nodes; `file` with `text` are a file's bytes as read.
 *
 * So a person's consent covers what was read, not what lies there a moment later (execution.md, Trust 1).
 */
export interface SetParams {
  workflow?: string | null;
  file?: string | null;
  text?: string | null;
  nodes?: NodeParams[] | null;
  objective?: string | null;
  inputs?: Record<string, unknown>;
  title?: string | null;
  owner?: string | null;
  /** Key by key before what the workflow says; the same goes for `limits`. */
  budget?: BudgetInput | null;
  limits?: LimitsInput | null;
  /** Nodes that are taken out of the workflow; what they need passes to what needed them. */
  prune?: Pruned[];
  /** Nodes that are added to the workflow. */
  extend?: NodeParams[];
  deliveryNode?: string | null;
  onRequiredFailure?: "drain" | "stop" | null;
  isolation?: "none" | "graph" | "node" | null;
  onSharedTree?: "notice" | "serialise" | null;
  finalCheck?: boolean | null;
  start?: boolean;
  /** A graph that is cleared in the same commit. */
  replace?: string | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  dryRun?: boolean;
  settle?: boolean;
}

/** `workgraph/signal`: to every live graph that has a wait for this name. */
export interface SignalParams {
  name: string;
  /** Any JSON value of at most 64 KiB: the output of what it wakes. */
  payload?: unknown;
  /** A second signal with this key changes nothing and is answered like the first. */
  idempotencyKey?: string | null;
}

/** Who heard it. */
export interface SignalResult {
  woke: Signalled[];
  /** Nodes that do not wait yet: it is kept for each of them. */
  kept?: Signalled[];
}

/** One node that waits. */
export interface Signalled {
  graph: string;
  node: string;
}

export type SkipReason = "condition_false" | "gate_not_accepted" | "no_input" | "finished_early";

/** How many attempts may run at once, run, and wait for a slot. */
export interface Slots {
  limit: number;
  running: number;
  queued: number;
}

/** The whole value of a graph at one rev; version 2 of the interchange form. */
export interface Snapshot {
  id: string;
  owner?: string | null;
  title: string;
  objective: string;
  status: GraphStatus;
  pauseReason?: string | null;
  outcome?: Outcome | null;
  stopping?: Stopping | null;
  /** The one node that may start, until it is settled. */
  stepping?: string | null;
  planVersion: number;
  rev: number;
  /** How many nodes are in each state; states without any are left out. */
  counts: Record<string, number>;
  spent: Spending;
  limits: Limits;
  budget?: Budget | null;
  /** Left out where they are the usual ones. */
  terms?: Terms | null;
  workspace: string;
  source: Source;
  /** Its output is the graph's result. */
  deliveryNode?: string | null;
  createdAt: number;
  updatedAt: number;
  nodes: Node[];
  /** Each a `Proposal`: edits that wait for acceptance. */
  proposals?: Record<string, unknown>[];
  /** The open ones. */
  asks: Ask[];
  /** The last 64. */
  history: HistoryEntry[];
}

/** Where the plan came from. */
export interface Source {
  kind: "workflow" | "file" | "text" | "nodes";
  name?: string | null;
  path?: string | null;
  sha256?: string | null;
}

/** What a graph used: settled attempts of every role. `wallMs` is time in which at least one node ran. */
export interface Spending {
  tokens: number;
  costUsd: number | null;
  wallMs: number;
  /** Some cost is not known: `costUsd` is what is known of it. */
  costIsPartial: boolean;
  /** The same by role; wall time is the attempts' own there. */
  roles: Record<string, Spent>;
}

/** What was used; `costUsd` null means unknown. */
export interface Spent {
  tokens: number;
  costUsd: number | null;
  wallMs: number;
}

/** `workgraph/step`: one node, by default the next in order. */
export interface StepParams {
  graph?: string | null;
  /** Refused with `conflict` where the graph is at another one. */
  expectedRev?: number | null;
  expectedPlan?: number | null;
  /** Applied once, whatever happens to the connection. */
  requestId?: string | null;
  /** Answer with a `preview`, change nothing. */
  dryRun?: boolean;
  /** Answer when the last process has ended, or after a while. */
  settle?: boolean;
  node?: string | null;
}

/** `graphd/stop`: leave keeps the children with their keepers, cancel ends all graphs first. */
export interface StopParams {
  mode?: "leave" | "cancel";
}

export type StopVerb = "budget" | "pause" | "cancel" | "clear";

/** A running node whose process ends first; what it is then. */
export interface StoppedNode {
  node: string;
  then: NodeState;
}

/** A stop that was wished for; `left` names the nodes whose trees are not yet proven empty. */
export interface Stopping {
  verb: StopVerb;
  by: string;
  at: number;
  left: string[];
}

/** `graphd/stopping`, the last frame of a connection. */
export interface StoppingNotice {
  reason: string;
  reconnect: boolean;
}

/** `workgraph/submitResult`: what the attempt made. A text, or any JSON value; the last one of a turn counts. */
export interface SubmitResultParams {
  output: unknown;
}

/** `workgraph/subscribe`. */
export interface SubscribeParams {
  /** Left out: all, later ones too. */
  graphs?: string[] | null;
  /** The rev held of each graph, after a lost connection. */
  since?: Record<string, number> | null;
  /** The store that these revs are of. */
  store?: string | null;
  activity?: boolean;
  output?: NodeRef[];
}

/** A subscription, and the values to start from. */
export interface SubscribeResult {
  subscription: string;
  store: string;
  graphs: Changed[];
}

/** What a graph was set under, beside limits and budget. */
export interface Terms {
  mode: "standard" | "deep";
  /** SHA-256 of the brief that a deep run started from. */
  admission?: string | null;
  onRequiredFailure: "drain" | "stop";
  isolation: "none" | "graph" | "node";
  onSharedTree: "notice" | "serialise";
  finalCheck: boolean;
  pruned?: Pruned[];
}

/** What is left of a graph that was cleared. */
export interface Tombstone {
  id: string;
  rev: number;
}

/** Something that can be done with a row. */
export interface TreeCommand {
  title: string;
  /** As in `workspace/executeCommand`. */
  command: string;
  arguments: Record<string, unknown>[];
  /** The state admits it now; a client shows others greyed. */
  enabled: boolean;
}

/** `workgraph/tree`: without params the graphs, with a graph its nodes, with a node too its attempts. */
export interface TreeParams {
  graph?: string | null;
  node?: string | null;
}

/** One row of a tree view. A client draws it as it stands and asks again, with what the row names, to open it. */
export interface TreeRow {
  /** Stable over time: `graph`, `graph/node` or `graph/node@attempt`. */
  id: string;
  label: string;
  description: string;
  /** A codicon's name. */
  icon: string;
  /** A graph's status, a node's state or an attempt's state. */
  state: string;
  collapsible: "none" | "collapsed" | "expanded";
  /** `graph.<status>`, `node.<state>`, `attempt.<state>` or `more`. */
  contextValue: string;
  commands: TreeCommand[];
}

/** `workgraph/unsubscribe`. */
export interface UnsubscribeParams {
  subscription: string;
}

/** `workgraph/validate`. */
export interface ValidateResult {
  diagnostics: Diagnostic[];
}

export type Verdict = "ACCEPT" | "REVISE" | "REJECT" | "BLOCKED" | "REPLAN";

/** How a result is checked: a command, or a worker with criteria. */
export interface Verify {
  run?: string | null;
  worker?: string | null;
  criteria: string;
}

/** How a result is checked: a command, or a worker with criteria. */
export interface VerifyInput {
  run?: string | null;
  worker?: string | null;
  criteria?: string;
}

/** The node has no worker: it settles at a time (`until`), or by a signal. */
export interface Wait {
  until?: string | null;
  signal?: string | null;
  timeoutS?: number | null;
}

/** The node has no worker: it settles at a time (`until`), or by a signal. */
export interface WaitInput {
  until?: string | null;
  signal?: string | null;
  timeoutS?: number | null;
}

/** Seconds in which an attempt's clock stood still: for a person, and for a provider's rest. */
export interface Waited {
  person: number;
  provider: number;
}

/** One reason why a node or a graph is where it is, and what to type next. */
export interface Why {
  code: string;
  since?: number | null;
  on?: string | null;
  detail: string;
  next: string;
}

/** What a connection may send at most. */
export interface WireLimits {
  headerBytes: number;
  bodyBytes: number;
  depth: number;
  bodySeconds: number;
  requests: number;
  connections: number;
}

/** One workflow that can be run by name. */
export interface WorkflowEntry {
  name: string;
  title: string;
  path: string;
  source: "workspace" | "user" | "bundled";
  /** Files of the same name that this one stands before. */
  shadows: string[];
  inputs: Record<string, DeclaredInput>;
  isValid: boolean;
}

/** A workflow by its file or its text. */
export interface WorkflowParams {
  file?: string | null;
  text?: string | null;
  inputs?: Record<string, unknown>;
}

/** Params and result of every request. */
export interface Requests {
  /** Who connects, and what both sides speak. The first request of every connection. */
  "graphd/hello": { params: HelloParams; result: HelloResult };
  /** How the daemon does, and what it holds for each connection. */
  "graphd/health": { params: Record<string, never>; result: Health };
  /** Whether more would start now, and why not. */
  "graphd/capacity": { params: Record<string, never>; result: Capacity };
  /** What can be checked from inside, and how to mend it. */
  "graphd/doctor": { params: DoctorParams; result: Check[] };
  /** End the daemon: `leave` keeps the children with their keepers, `cancel` ends all graphs first. */
  "graphd/stop": { params: StopParams; result: Empty };
  /** Give the workspace to a newer version: stop, keep the children, and let clients come back. */
  "graphd/handover": { params: HandoverParams; result: Empty };
  /** Check a plan, freeze it, start it: exactly one of `workflow`, `file`, `text` and `nodes`. */
  "workgraph/set": { params: SetParams; result: MutationResult };
  /** Start nothing more; with mode `stop`, end what runs and put it back to ready. */
  "workgraph/pause": { params: PauseParams; result: MutationResult };
  /** Go on; with `topUp` under a budget that allows so much more. */
  "workgraph/resume": { params: ResumeParams; result: MutationResult };
  /** Start one node, and pause when it is settled. */
  "workgraph/step": { params: StepParams; result: MutationResult };
  /** Move the deadline of a running node on. */
  "workgraph/extendTimeout": { params: ExtendTimeoutParams; result: MutationResult };
  /** Try one node again with what hung on it, or all that failed or is blocked. */
  "workgraph/retry": { params: RetryParams; result: MutationResult };
  /** Stop all and settle the rest; `cancelled` once the last process tree is proven empty. */
  "workgraph/cancel": { params: CancelParams; result: MutationResult };
  /** As cancel, then a tombstone. */
  "workgraph/clear": { params: ClearParams; result: MutationResult };
  /** Add nodes, as a new plan version; a complete graph opens again. */
  "workgraph/extend": { params: ExtendParams; result: MutationResult };
  /** Add, change, remove, restart and cancel nodes, as one plan version. */
  "workgraph/replan": { params: ReplanParams; result: MutationResult };
  /** What changed in a workflow file since its graph was started, as a proposal; none where nothing did. */
  "workgraph/apply": { params: ApplyParams; result: MutationResult };
  /** Carry a proposal out as one replan, checked anew. */
  "workgraph/accept": { params: AcceptParams; result: MutationResult };
  /** A proposal is not wanted. */
  "workgraph/dismiss": { params: DismissParams; result: MutationResult };
  /** The plan of a graph, as it is now, as a new graph. */
  "workgraph/rerun": { params: RerunParams; result: MutationResult };
  /** Write the plan of a graph as a workflow file; never over another one unless `force` says so. */
  "workgraph/save": { params: SaveParams; result: SaveResult };
  /** Skip what has not started, let what runs end. */
  "workgraph/finish": { params: FinishParams; result: MutationResult };
  /** A person declares a stuck process tree dead, naming exactly its pids. */
  "workgraph/release": { params: ReleaseParams; result: MutationResult };
  /** Pause a node, and open its agent's session: it is held until this connection ends, then it goes on there. */
  "workgraph/hold": { params: NodeRef; result: HoldResult };
  /** What waits for a person, oldest first; or what stands. */
  "workgraph/asks": { params: AsksParams; result: Ask[] };
  /** Answer an ask; the first valid answer counts. */
  "workgraph/respond": { params: RespondParams; result: MutationResult };
  /** A standing answer covers nothing more. */
  "workgraph/revoke": { params: RevokeParams; result: MutationResult };
  /** Something happened outside: wake what waits for it, keep it for what will. */
  "workgraph/signal": { params: SignalParams; result: SignalResult };
  /** Hand in the result of the running turn: it counts over what the attempt says. Durable before the answer. */
  "workgraph/submitResult": { params: SubmitResultParams; result: Empty };
  /** Say how far the attempt is. */
  "workgraph/reportProgress": { params: ReportProgressParams; result: Empty };
  /** Propose a node for work that the attempt found; a person accepts or dismisses it. */
  "workgraph/reportDiscovery": { params: ReportDiscoveryParams; result: ReportDiscoveryResult };
  /** Ask people something, and wait for the answer. */
  "workgraph/askParent": { params: AskParentParams; result: AskParentResult };
  /** Bytes of an input of the attempt. */
  "workgraph/readInput": { params: ReadInputParams; result: ReadInputResult };
  /** Headers of graphs, newest first. */
  "workgraph/list": { params: ListParams; result: ListResult };
  /** The whole graph; null for one that was cleared, or where there is none and none was named. */
  "workgraph/status": { params: GraphParams; result: Snapshot | null };
  /** A node with its attempts, oldest first, and the deliveries about it. */
  "workgraph/node": { params: NodeRef; result: NodeResult };
  /** The values to start from; `workgraph/changed` goes on from them. */
  "workgraph/subscribe": { params: SubscribeParams; result: SubscribeResult };
  /** End a subscription. */
  "workgraph/unsubscribe": { params: UnsubscribeParams; result: UnsubscribeParams };
  /** Events of whole revs after a rev, oldest first. */
  "workgraph/history": { params: HistoryParams; result: HistoryResult };
  /** Why a node is where it is, and what to type next. */
  "workgraph/why": { params: NodeRef; result: Why[] };
  /** Bytes of a result. */
  "workgraph/output": { params: OutputParams; result: OutputResult };
  /** What an attempt printed after a cursor. */
  "workgraph/observe": { params: ObserveParams; result: ObserveResult };
  /** What an agent's attempt changed in the git work tree, until now while it runs; who worked there meanwhile. */
  "workgraph/diff": { params: DiffParams; result: DiffResult };
  /** The process trees that we keep, and what they cost. */
  "workgraph/processes": { params: Record<string, never>; result: ProcessEntry[] };
  /** Every workflow that can be run by name. */
  "workgraph/workflows": { params: Record<string, never>; result: WorkflowEntry[] };
  /** Every finding in a workflow file, in the order of its text. */
  "workgraph/validate": { params: WorkflowParams; result: ValidateResult };
  /** The compiled nodes in the long form, and what can run together. */
  "workgraph/explain": { params: WorkflowParams; result: ExplainResult };
  /** The whole graph as `workgraph/change` lines. */
  "workgraph/export": { params: ExportParams; result: ExportResult };
  /** Make the graph that such lines come to; an active one becomes user_paused. */
  "workgraph/import": { params: ImportParams; result: MutationResult };
  /** Remove ended graphs with their files, or only the files. */
  "workgraph/purge": { params: PurgeParams; result: PurgeResult };
  /** What an owner has not acknowledged, oldest first. */
  "workgraph/deliveries": { params: DeliveriesParams; result: DeliveriesResult };
  /** These deliveries are not sent again. */
  "workgraph/acknowledge": { params: AcknowledgeParams; result: AcknowledgeResult };
  /** Profiles, whether their programs are installed, and which workers they serve. */
  "workgraph/agents": { params: AgentsParams; result: AgentEntry[] };
  /** Rows of a tree view: graphs, the nodes of one, the attempts of a node. */
  "workgraph/tree": { params: TreeParams; result: TreeRow[] };
  /** A layered drawing and its twin in words. */
  "workgraph/picture": { params: PictureParams; result: Picture };
}

/** Params of every notification, serverToClient. */
export interface ServerNotifications {
  "workgraph/changed": Changed;
  "workgraph/activity": Activity;
  "workgraph/asks": AsksNotice;
  "workgraph/output": OutputChunk;
  "graphd/stopping": StoppingNotice;
}

/** Params of every notification, clientToServer. */
export interface ClientNotifications {
  "$/cancelRequest": CancelRequestParams;
}

/** The number of every error by its name, which stands in `data.code`. */
export interface ErrorNumbers {
  parseError: -32700;
  invalidRequest: -32600;
  methodNotFound: -32601;
  invalidParams: -32602;
  internalError: -32603;
  notGreeted: -32002;
  requestCancelled: -32800;
  notFound: -32050;
  alreadyExists: -32051;
  invalidObjective: -32052;
  invalidBudget: -32053;
  invalidPlan: -32054;
  invalidTransition: -32055;
  upstreamNotAchieved: -32056;
  conflict: -32057;
  staleAttempt: -32058;
  staleInput: -32059;
  capacity: -32060;
  unauthorised: -32061;
  untrusted: -32062;
  agentMissing: -32063;
  malformedLog: -32064;
  locked: -32065;
  storeUnavailable: -32066;
  protocolMismatch: -32067;
  askGone: -32068;
  overloaded: -32070;
  inputMissing: -32071;
  childInputRefused: -32072;
  ambiguous: -32075;
  unsavedChanges: -32076;
  agentFailed: -32077;
  cursorInvalid: -32078;
  tooLarge: -32079;
  notSupported: -32080;
  requestIdReused: -32081;
  stuck: -32082;
}

export type ErrorName = keyof ErrorNumbers;
