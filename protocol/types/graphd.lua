---@meta graphd
-- Written by `make generate` from protocol/protocol.json. Results leave out what says nothing.

--- `workgraph/accept`; where `graph` is left out, in the graph that has the proposal.
---@class graphd.AcceptParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.
---@field proposal string

--- `workgraph/acknowledge`: these are not sent again. Repeating it is harmless.
---@class graphd.AcknowledgeParams
---@field deliveries string[]

--- All that are acknowledged now.
---@class graphd.AcknowledgeResult
---@field deliveries string[]

--- `workgraph/activity`.
---@class graphd.Activity
---@field graph string
---@field nodes graphd.NodeActivity[]

--- Who caused an event.
---@class graphd.Actor
---@field kind graphd.ActorKind
---@field client? string|nil
---@field attempt? string|nil

---@alias graphd.ActorKind
---| "person"
---| "agent"
---| "attempt"
---| "daemon"
---| "policy"

--- One profile.
---@class graphd.AgentEntry
---@field name string
---@field driver string
---@field installed boolean
---@field version? string|nil
---@field path? string|nil
---@field searched string[] Folders of PATH that were looked through.
---@field capabilities? table<string, any>|nil What it answered to `initialize`, where it was asked.
---@field reports graphd.Reports What it tells of its usage.
---@field install string
---@field login string
---@field standing "tested"|"documented" Whether it runs in our continuous tests, or was only measured and written down.
---@field measured? string|nil The version that the profile was measured with.
---@field workers? string[] Workers that it serves now, for this caller.
---@field problems string[]

--- `workgraph/agents`. Programs are started with `probe` alone, which asks each for its version and capabilities.
---@class graphd.AgentsParams
---@field probe? boolean

--- `workgraph/apply`: the plan in a file against the graph that was started from it; answers with a proposal.
---@class graphd.ApplyParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.
---@field file string
---@field text? string|nil The bytes of the file as they were read.

--- A person is asked before the node takes a slot.
---@class graphd.Approval
---@field prompt string
---@field default? "allow"|"deny"|nil The answer where nobody can be asked.

--- A person is asked before the node takes a slot.
---@class graphd.ApprovalInput
---@field prompt? string
---@field default? "allow"|"deny"|nil The answer where nobody can be asked.

--- A question that waits for an answer.
---@class graphd.Ask
---@field id string
---@field kind graphd.AskKind
---@field graph? string|nil
---@field node? string|nil
---@field attempt? integer|nil
---@field title string
---@field action table<string, any>
---@field actionHash string
---@field options table<string, string>[]
---@field scopes string[]
---@field openedAt integer
---@field deadlineAt? integer|nil
---@field default? string|nil The option that the deadline brings.
---@field state graphd.AskState
---@field answeredBy? string|nil
---@field option? string|nil The answer, where it was one of the options.
---@field text? string|nil
---@field scope? string|nil
---@field comment? string|nil
---@field rule? string|nil What an answer for the attempt or the graph would cover: a tool kind and a glob.

--- An ask that needs no answer any more. Without `by` it was withdrawn.
---@class graphd.AskClosed
---@field id string
---@field by? string|nil
---@field answer? string|nil

---@alias graphd.AskKind
---| "permission"
---| "question"
---| "escalation"
---| "approval"
---| "trust"
---| "proposal"

--- `workgraph/askParent`: a question to people. The same words again wait for the same answer.
---@class graphd.AskParentParams
---@field question string
---@field waitMs? integer|nil Left out: `askParentSeconds` of the settings.

--- Without `answer` nobody has answered yet (`open`), or nobody will (`answered` by a rule, `withdrawn`).
---@class graphd.AskParentResult
---@field ask string
---@field state graphd.AskState
---@field answer? string|nil
---@field answeredBy? string|nil

---@alias graphd.AskState
---| "open"
---| "answered"
---| "withdrawn"

--- `workgraph/asks`: questions that came and went since the last one.
---@class graphd.AsksNotice
---@field opened graphd.Ask[]
---@field closed graphd.AskClosed[]

--- `workgraph/asks`: the open ones, oldest first, unless said otherwise.
---@class graphd.AsksParams
---@field graph? string|nil
---@field state? "open"|"answered"|"withdrawn"|"standing" `standing`: answers for an attempt or a graph that were not revoked.

--- One try of a node.
---@class graphd.Attempt
---@field id string slug@number, or slug.role@number of one that is no worker's
---@field graph string
---@field node string
---@field role graphd.Role
---@field number integer
---@field state graphd.AttemptState
---@field outcome? graphd.AttemptOutcome|nil
---@field failureClass? graphd.FailureClass|nil
---@field reason? string|nil
---@field exitCode? integer|nil
---@field signal? integer|nil
---@field worker string
---@field profile string
---@field pid? integer|nil
---@field keeperPid? integer|nil
---@field stuckPids? integer[] Processes whose death cannot be proven.
---@field startedAt integer
---@field endedAt? integer|nil
---@field deadlineAt? integer|nil
---@field waitedS? graphd.Waited|nil
---@field limit? graphd.Budget|nil The rest of the graph's budget, where that was all that there was for it.
---@field spent graphd.Spent
---@field isCounted boolean It counts against `limits.attemptsPerNode`.

---@alias graphd.AttemptOutcome
---| "achieved"
---| "not_achieved"
---| "failed"
---| "cancelled"
---| "paused"
---| "lost"
---| "put_back"

---@alias graphd.AttemptState
---| "starting"
---| "live"
---| "stopping"
---| "stuck"
---| "settled"

--- One param that does not fit.
---@class graphd.BadField
---@field path string
---@field message string
---@field expected string
---@field got string
---@field suggestions? string[]

--- What a graph may use over its life; what is left out is not bounded.
---@class graphd.Budget
---@field tokens? integer|nil
---@field costUsd? number|nil
---@field wallSeconds? number|nil

--- What a graph may use over its life; what is left out is not bounded.
---@class graphd.BudgetInput
---@field tokens? integer|nil
---@field costUsd? number|nil
---@field wallSeconds? number|nil

--- `workgraph/cancel`.
---@class graphd.CancelParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.
---@field reason? string|nil

--- `$/cancelRequest`.
---@class graphd.CancelRequestParams
---@field id integer|string

--- `graphd/capacity`.
---@class graphd.Capacity
---@field available boolean Something more would start now.
---@field reasons string[] Why not.
---@field concurrency graphd.Slots
---@field limits graphd.CapacityLimits
---@field budgets graphd.GraphBudget[]
---@field agents table<string, integer> How many attempts run, by profile.

--- Limits of the whole daemon.
---@class graphd.CapacityLimits
---@field concurrency integer

--- `workgraph/changed`: all that changed after `from`, up to `rev`.
---@class graphd.Changed
---@field operation string
---@field graph string
---@field from integer The rev that the client holds.
---@field rev integer
---@field header? graphd.Header|nil
---@field nodes? graphd.Node[]|nil Whole nodes that changed: merge them by slug.
---@field asks? graphd.Ask[]|nil
---@field proposals? table<string, any>[]|nil
---@field history? graphd.HistoryEntry[]|nil Entries since `from`.
---@field full? boolean|nil `nodes` holds every node: forget what is held.
---@field cleared? graphd.Tombstone|nil The graph is gone.

--- A node that is defined anew.
---@class graphd.ChangedNode
---@field node string
---@field fields string[] Which keys of it differ.

--- One line of the doctor.
---@class graphd.Check
---@field id string
---@field ok boolean
---@field detail string
---@field fix string

--- `workgraph/clear`.
---@class graphd.ClearParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.

--- Who connects.
---@class graphd.Client
---@field name string
---@field version string
---@field pid? integer|nil

--- One connection as health shows it.
---@class graphd.ConnectionHealth
---@field client string
---@field principal string
---@field bytesInFlight integer
---@field framesInFlight integer

--- Which daemon answers.
---@class graphd.Daemon
---@field version string
---@field pid integer
---@field startedAt integer
---@field epoch integer

--- An input that a workflow takes; without a default it must be given.
---@class graphd.DeclaredInput
---@field type string
---@field description string
---@field default? any
---@field enum? any[]

--- `workgraph/deliveries`: what an owner has not acknowledged yet.
---@class graphd.DeliveriesParams
---@field owner? string|nil
---@field after? string|nil
---@field waitMs? integer Wait so long for one where there is none.

--- Oldest first; `next` is what to ask after.
---@class graphd.DeliveriesResult
---@field deliveries graphd.Delivery[]
---@field next? string|nil

--- A result that waits for its owner's acknowledgement.
---@class graphd.Delivery
---@field id string
---@field owner string
---@field graph string
---@field node? string|nil
---@field kind graphd.DeliveryKind
---@field text string
---@field createdAt integer

---@alias graphd.DeliveryKind
---| "result"
---| "failure"
---| "escalation"
---| "end"

--- What is wrong with a workflow, where, and what to do.
---@class graphd.Diagnostic
---@field severity "error"|"warning"
---@field code string
---@field path string
---@field range graphd.Range
---@field message string
---@field hint string

--- `workgraph/diff`: what an attempt changed; without `attempt` the last one.
---@class graphd.DiffParams
---@field graph? string|nil
---@field node string
---@field attempt? integer|nil

--- A patch as `git apply` takes it, binary files apart, which it only names; `""` where nothing changed.
---@class graphd.DiffResult
---@field patch string
---@field shared graphd.RanBeside[]

--- `workgraph/dismiss`; where `graph` is left out, in the graph that has the proposal.
---@class graphd.DismissParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.
---@field proposal string
---@field reason? string|nil

--- `graphd/doctor`: `report` adds rows that help whoever reads a bug report, free of users' text.
---@class graphd.DoctorParams
---@field report? boolean

--- From a node to one that needs it, always downwards.
---@class graphd.DrawnEdge
---@field from string
---@field to string
---@field points [integer, integer][] A line from the lower edge of `from` to the upper edge of `to`.

--- No params.
---@class graphd.Empty

--- `data` of an error. Which of the facts are there depends on the code; there may be more than these.
---@class graphd.ErrorFacts
---@field retryable boolean The same request may succeed later.
---@field code? string|nil A name from the table of errors, for all errors of ours.
---@field hint? string|nil What to do, or to type, next.
---@field graph? string|nil
---@field node? string|nil
---@field from? string|nil
---@field to? string|nil
---@field rev? integer|nil
---@field planVersion? integer|nil
---@field suggestions? string[]
---@field fields? graphd.BadField[] Of −32602.
---@field graphs? table<string, any>[] Of `ambiguous`: what the name may mean, as `{id, title, status}`.
---@field diagnostics? table<string, any>[] Of `invalidPlan`: for files as `validate` finds them, for inline nodes `{code, slug, message, hint}`.
---@field inputs? string[] Of `inputMissing`.

--- One entry of the log.
---@class graphd.Event
---@field graph string
---@field rev integer
---@field index integer Its place within the rev.
---@field at integer
---@field kind string
---@field node? string|nil
---@field payload table<string, any>
---@field actor graphd.Actor

--- `workgraph/explain`: the compiled nodes, layer by layer.
---@class graphd.ExplainResult
---@field title string
---@field objective string
---@field config? table<string, any>|nil What the graph has beside its nodes, where it is not at its default; in the words of a workflow file.
---@field nodes table<string, any>[] The same for nodes, everything written out.
---@field waves string[][] What can run together.
---@field warnings graphd.Diagnostic[]

--- `workgraph/export`.
---@class graphd.ExportParams
---@field graph? string|nil
---@field version? 1|2 1 refuses what it has no words for.

--- `workgraph/change` lines, each one JSON text.
---@class graphd.ExportResult
---@field lines string[]

--- `workgraph/extend`.
---@class graphd.ExtendParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.
---@field nodes graphd.NodeParams[]

--- `workgraph/extendTimeout`.
---@class graphd.ExtendTimeoutParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.
---@field node string
---@field byMs integer How much longer it may work.

--- Why a node failed.
---@class graphd.Failure
---@field class graphd.FailureClass
---@field reason string
---@field attempt? string|nil

---@alias graphd.FailureClass
---| "exec_failed"
---| "timeout"
---| "verdict_fail"
---| "merge_failed"
---| "limit"
---| "refused"
---| "agent_missing"
---| "lost"

--- `workgraph/finish`.
---@class graphd.FinishParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.
---@field reason string

--- One node per item of a list.
---@class graphd.ForEach
---@field in string
---@field as string
---@field max integer

--- One node per item of a list.
---@class graphd.ForEachInput
---@field in string
---@field as string
---@field max? integer

--- The node's output is a verdict; REVISE sends the path from `revise` back.
---@class graphd.Gate
---@field revise? string|nil
---@field maxRevisions integer

--- The node's output is a verdict; REVISE sends the path from `revise` back.
---@class graphd.GateInput
---@field revise? string|nil
---@field maxRevisions? integer

--- What a graph may use, has used, and has set aside.
---@class graphd.GraphBudget
---@field graph string
---@field limit table<string, number>
---@field spent table<string, number>
---@field reserved table<string, number>

--- Names a graph by id, unique prefix, workflow name (its latest run) or `@last`.
---@class graphd.GraphParams
---@field graph? string|nil

---@alias graphd.GraphStatus
---| "active"
---| "user_paused"
---| "infra_paused"
---| "blocked"
---| "budget_limited"
---| "complete"
---| "cancelled"

--- `graphd/handover`: a newer version asks for the workspace; the daemon stops, and its children go on.
---@class graphd.HandoverParams
---@field version string
---@field protocol integer[] The lowest and the highest number that the newer one speaks.

--- A graph without its nodes.
---@class graphd.Header
---@field id string
---@field owner? string|nil
---@field title string
---@field objective string
---@field status graphd.GraphStatus
---@field pauseReason? string|nil
---@field outcome? graphd.Outcome|nil
---@field stopping? graphd.Stopping|nil
---@field stepping? string|nil The one node that may start, until it is settled.
---@field planVersion integer
---@field rev integer
---@field counts table<string, integer> How many nodes are in each state; states without any are left out.
---@field spent graphd.Spending
---@field limits graphd.Limits
---@field budget? graphd.Budget|nil
---@field terms? graphd.Terms|nil Left out where they are the usual ones.
---@field workspace string
---@field source graphd.Source
---@field deliveryNode? string|nil Its output is the graph's result.
---@field createdAt integer
---@field updatedAt integer

--- `graphd/health`.
---@class graphd.Health
---@field store "ok"|"full"|"readOnly"
---@field loopLagMs number
---@field connections graphd.ConnectionHealth[]
---@field epoch integer
---@field starts integer
---@field pid integer
---@field version string
---@field socket string
---@field workspace string
---@field rssBytes integer

--- `graphd/hello`. Read by hand in the server (it answers without pydantic); a test holds both to each other.
---@class graphd.HelloParams
---@field client graphd.Client
---@field protocol [integer, integer] The lowest and the highest number that the client speaks.
---@field workspace? string|nil
---@field cwd? string|nil
---@field env? table<string, string>|nil What children of graphs set on this connection get of it is allow-listed.
---@field interactive? boolean|nil
---@field locale? string|nil
---@field owner? graphd.Owner|nil
---@field attemptToken? string|nil

--- What was agreed.
---@class graphd.HelloResult
---@field protocol integer
---@field daemon graphd.Daemon
---@field store string The database's id: revs of another store mean nothing here.
---@field workspace string
---@field principal "attempt"|"agent"|"user"
---@field limits graphd.WireLimits

--- One line of the last 64.
---@class graphd.HistoryEntry
---@field at integer
---@field rev integer
---@field kind string
---@field node? string|nil
---@field detail? string|nil

--- `workgraph/history`: events after a rev.
---@class graphd.HistoryParams
---@field graph? string|nil
---@field after? integer
---@field limit? integer
---@field kinds? string[]|nil

--- Whole revs only; `next` is the rev to ask after.
---@class graphd.HistoryResult
---@field events graphd.Event[]
---@field next? integer|nil

--- How to open the session that is held: a program's words, and where it has to stand.
---
--- Whoever starts it locks `sessionLock` (flock, exclusive) before, and hands the descriptor on to it: the node then
--- waits for the program's end, whatever becomes of this connection.
---@class graphd.HoldResult
---@field childSession string
---@field cwd string
---@field argv string[]
---@field sessionLock? string|nil

--- `workgraph/import`: lines of an export; the last change counts. An active graph becomes user_paused.
---@class graphd.ImportParams
---@field lines string[]
---@field owner? string|nil Left out: the owner that the lines name.
---@field newId? boolean Make another graph of it, where its own id is taken.
---@field requestId? string|nil
---@field dryRun? boolean
---@field settle? boolean

--- A node that a `forEach` node made: whose, which (from 1), and the item as JSON.
---@class graphd.Item
---@field of string
---@field index integer
---@field value string

--- Bounds of one graph.
---@class graphd.Limits
---@field concurrency integer
---@field maxNodes integer
---@field attemptsPerNode integer
---@field roundsPerAttempt integer
---@field replans integer
---@field timeoutExtensions integer

--- Bounds of one graph.
---@class graphd.LimitsInput
---@field concurrency? integer
---@field maxNodes? integer
---@field attemptsPerNode? integer
---@field roundsPerAttempt? integer
---@field replans? integer
---@field timeoutExtensions? integer

--- `workgraph/list`, newest first.
---@class graphd.ListParams
---@field status? graphd.GraphStatus|"live"|nil
---@field owner? string|nil
---@field after? string|nil
---@field limit? integer

--- Headers.
---@class graphd.ListResult
---@field graphs graphd.Header[]
---@field next? string|nil

--- A node whose state changes at once.
---@class graphd.MovedNode
---@field node string
---@field origin graphd.NodeState
---@field state graphd.NodeState

--- What a mutation answers, after its commit.
---@class graphd.MutationResult
---@field graph string
---@field rev integer
---@field stopping? string[]|nil Nodes whose processes have still to end.
---@field preview? graphd.Snapshot|nil
---@field diff? graphd.PlanDiff|nil What edits of the plan come to; of a dry run, and of `apply`.
---@field proposal? string|nil What waits to be accepted.

--- One node as the snapshot shows it.
---@class graphd.Node
---@field id string
---@field slug string
---@field title string
---@field spec string
---@field worker string
---@field needs string[]
---@field condition? string|nil
---@field required boolean Where it fails, what needs it is blocked.
---@field state graphd.NodeState
---@field phase? graphd.Phase|nil
---@field attempts integer Counted ones; numbers run on.
---@field rounds integer
---@field output? graphd.Output|nil
---@field failure? graphd.Failure|nil
---@field skip? graphd.SkipReason|nil
---@field cancelReason? string|nil
---@field blockedBy? string|nil
---@field removedIn? integer|nil The plan version that took it out of the plan; views hide it.
---@field childSession? string|nil
---@field discoveredFrom? string[]
---@field timeoutMs integer
---@field retry graphd.Retry
---@field reportToParent boolean
---@field priority integer
---@field gate? graphd.Gate|nil
---@field verify? graphd.Verify|nil
---@field outputSchema? table<string, any>|nil
---@field approval? graphd.Approval|nil
---@field wait? graphd.Wait|nil
---@field forEach? graphd.ForEach|nil
---@field item? graphd.Item|nil
---@field review? graphd.Review|nil
---@field artifacts? string[]
---@field writes? string[]
---@field isolation? "none"|"graph"|"node"|nil
---@field permissions? graphd.Permissions|nil
---@field model? string|nil
---@field thinking? string|nil
---@field mode? string|nil
---@field maxToolCalls? integer|nil
---@field unattendedExtensions? integer|nil
---@field verdict? graphd.Verdict|nil Of a gate.
---@field findings? string|nil What the gate said that sent this work back.
---@field wakeAt? integer|nil When what it waits for is due, or has taken too long.
---@field notBefore? integer|nil It is tried again then.
---@field changedAt integer The rev of its last change.
---@field startedAt? integer|nil
---@field endedAt? integer|nil
---@field spent graphd.Spent

--- Volatile: moves no rev.
---@class graphd.NodeActivity
---@field node string
---@field attempt integer
---@field phase graphd.Phase
---@field since integer
---@field lastLine? string|nil
---@field coolDownUntil? integer|nil When the rest of its provider is over.

--- A node given inline to `set`.
---@class graphd.NodeParams
---@field slug string
---@field spec? string
---@field title? string
---@field worker? string|nil Default: `shell`; nobody for a node that waits.
---@field needs? string[]
---@field condition? string|nil
---@field required? boolean
---@field timeoutMs? integer
---@field hardTimeoutMs? integer|nil
---@field retry? graphd.RetryInput
---@field onLost? graphd.OnLost
---@field priority? integer
---@field inputMapping? table<string, string>
---@field reportToParent? boolean
---@field gate? graphd.GateInput|nil
---@field verify? graphd.VerifyInput|nil
---@field outputSchema? table<string, any>|nil
---@field approval? boolean|graphd.ApprovalInput|nil
---@field wait? graphd.WaitInput|nil A node that waits has no spec and no worker.
---@field forEach? graphd.ForEachInput|nil
---@field review? graphd.ReviewInput|nil
---@field artifacts? string[]
---@field writes? string[]
---@field isolation? "none"|"graph"|"node"|nil
---@field permissions? graphd.Permissions|nil
---@field model? string|nil
---@field thinking? "low"|"medium"|"high"|"max"|nil
---@field mode? string|nil
---@field maxToolCalls? integer|nil
---@field unattendedExtensions? integer|nil

--- A change of one node: the keys that are sent, beside the name; null puts one back to its default.
---@class graphd.NodePatch
---@field slug string
---@field spec? string
---@field title? string
---@field worker? string|nil Default: `shell`; nobody for a node that waits.
---@field needs? string[]
---@field condition? string|nil
---@field required? boolean
---@field timeoutMs? integer
---@field hardTimeoutMs? integer|nil
---@field retry? graphd.RetryInput
---@field onLost? graphd.OnLost
---@field priority? integer
---@field inputMapping? table<string, string>
---@field reportToParent? boolean
---@field gate? graphd.GateInput|nil
---@field verify? graphd.VerifyInput|nil
---@field outputSchema? table<string, any>|nil
---@field approval? boolean|graphd.ApprovalInput|nil
---@field wait? graphd.WaitInput|nil A node that waits has no spec and no worker.
---@field forEach? graphd.ForEachInput|nil
---@field review? graphd.ReviewInput|nil
---@field artifacts? string[]
---@field writes? string[]
---@field isolation? "none"|"graph"|"node"|nil
---@field permissions? graphd.Permissions|nil
---@field model? string|nil
---@field thinking? "low"|"medium"|"high"|"max"|nil
---@field mode? string|nil
---@field maxToolCalls? integer|nil
---@field unattendedExtensions? integer|nil

--- Names a node of a graph.
---@class graphd.NodeRef
---@field graph? string|nil
---@field node string

--- `workgraph/node`.
---@class graphd.NodeResult
---@field node graphd.Node
---@field attempts graphd.Attempt[]
---@field deliveries graphd.Delivery[]

---@alias graphd.NodeState
---| "waiting"
---| "ready"
---| "running"
---| "achieved"
---| "failed"
---| "blocked"
---| "skipped"
---| "cancelled"

--- `workgraph/observe`: what an attempt printed, from a cursor of an earlier answer.
---@class graphd.ObserveParams
---@field graph? string|nil
---@field node string
---@field attempt? integer|nil
---@field cursor? string|nil
---@field limit? integer

--- Items, where to go on, and whether more can come.
---@class graphd.ObserveResult
---@field items graphd.ObservedItem[]
---@field cursor string
---@field live boolean
---@field attempt integer

--- One piece of an attempt's life.
---@class graphd.ObservedItem
---@field kind "text"|"thought"|"tool"|"ask"|"plan"|"usage"
---@field at integer
---@field text? string|nil
---@field tool? string|nil

---@alias graphd.OnLost
---| "resume"
---| "pause"
---| "fail"

---@alias graphd.Outcome
---| "ok"
---| "withFailures"
---| "rejected"

--- A node's result. In snapshots `text` is cut at 4 KiB; `workgraph/output` reads all of it.
---@class graphd.Output
---@field text string
---@field total integer Bytes of the whole result.
---@field mediaType string
---@field isCut boolean

--- `workgraph/output` as a notification; `skipped` says how many bytes a slow client missed.
---@class graphd.OutputChunk
---@field graph string
---@field node string
---@field attempt integer
---@field offset integer
---@field text string
---@field skipped? integer|nil

--- `workgraph/output`: bytes `offset` … of a captured result.
---@class graphd.OutputParams
---@field graph? string|nil
---@field node string
---@field attempt? integer|nil
---@field offset? integer
---@field limit? integer

--- A slice of an output; offsets are bytes, cut at character borders.
---@class graphd.OutputResult
---@field text string
---@field offset integer
---@field next integer The offset to go on from: what the bytes of `text` say only where they are valid UTF-8.
---@field total integer
---@field mediaType string

--- The parent agent that this connection speaks for.
---@class graphd.Owner
---@field id string
---@field mode? "auto"|"ask"|"off"|nil

--- `workgraph/pause`.
---@class graphd.PauseParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.
---@field mode? "drain"|"stop"
---@field settleSeconds? number|nil
---@field reason? string|nil

---@alias graphd.Permissions
---| "read"
---| "edit"
---| "full"

---@alias graphd.Phase
---| "starting"
---| "adopting"
---| "resuming"
---| "working"
---| "awaiting_permission"
---| "awaiting_input"
---| "verifying"
---| "merging"
---| "joining"
---| "stopping"
---| "stuck"
---| "queued"
---| "cooling_down"

--- A layered drawing, and its twin in words.
---@class graphd.Picture
---@field graph string
---@field rev integer
---@field width integer
---@field height integer
---@field layers string[][] Slugs from left to right, top layer first.
---@field nodes graphd.PlacedNode[]
---@field edges graphd.DrawnEdge[]
---@field hidden integer So many nodes are not drawn.
---@field text string One line a node, with its state and what it needs, layer by layer: for screen readers and terminals.
---@field drawing? string|nil The same in box characters, where it fits into 120 columns.

--- `workgraph/picture`: a graph of more than `maxNodes` nodes is drawn around what runs and what failed.
---@class graphd.PictureParams
---@field graph? string|nil
---@field maxNodes? integer

--- A box: `x` and `y` are its upper left corner, in units of about a pixel.
---@class graphd.PlacedNode
---@field id string The node's slug.
---@field x integer
---@field y integer
---@field w integer
---@field h integer
---@field label string
---@field state graphd.NodeState

--- What becomes of a plan, by slug.
---@class graphd.PlanDiff
---@field added? string[]
---@field changed? graphd.ChangedNode[]
---@field removed? graphd.RemovedNode[]
---@field stopped? graphd.StoppedNode[]
---@field moved? graphd.MovedNode[]
---@field kept? string[] At rest, and no longer in the file: what is done stays.

--- Zero-based line and character, in UTF-16 code units as LSP counts.
---@class graphd.Position
---@field line integer
---@field character integer

--- One process tree that we keep.
---@class graphd.ProcessEntry
---@field graph string
---@field node? string|nil
---@field attempt integer
---@field role graphd.Role
---@field pid? integer|nil
---@field startedAt integer
---@field rssBytes integer
---@field cpuS number
---@field keeperPid? integer|nil
---@field state graphd.AttemptState

--- A node that is taken out of a workflow at its start, and why.
---@class graphd.Pruned
---@field node string
---@field reason string

--- `workgraph/purge`: one ended graph, or all that ended so long ago.
---@class graphd.PurgeParams
---@field graph? string|nil
---@field olderThanDays? number|nil
---@field transcripts? boolean Remove only what attempts left on the disk; the graphs stay.

--- What was removed.
---@class graphd.PurgeResult
---@field graphs string[]
---@field bytes integer

--- An attempt of another node that ran in the same tree at the same time: a patch may hold its changes too.
---@class graphd.RanBeside
---@field graph string
---@field node string
---@field attempt integer

--- From start to end, the end excluded.
---@class graphd.Range
---@field start graphd.Position
---@field end graphd.Position

--- `workgraph/readInput`: bytes `offset` … of one of the attempt's inputs.
---@class graphd.ReadInputParams
---@field name string
---@field offset? integer
---@field limit? integer

--- A slice of an input; offsets are bytes, cut at character borders.
---@class graphd.ReadInputResult
---@field text string
---@field offset integer
---@field next integer The offset to go on from.
---@field total integer

--- `workgraph/release`: names exactly the pids that the stuck attempt shows.
---@class graphd.ReleaseParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.
---@field node string
---@field pids integer[]

--- A node that leaves the plan, and why.
---@class graphd.RemovedNode
---@field node string
---@field reason string

--- `workgraph/replan`: all of it happens as one plan version, or nothing.
---@class graphd.ReplanParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.
---@field add? graphd.NodeParams[]
---@field change? graphd.NodePatch[]
---@field remove? graphd.RemovedNode[]
---@field restart? string[] With every node that read their output.
---@field cancelNodes? string[] They stay in the plan, and may be retried.
---@field resume? boolean A paused graph goes on.
---@field reason? string|nil

--- `workgraph/reportDiscovery`: work that should be done too. The same title of the same attempt is the same.
---@class graphd.ReportDiscoveryParams
---@field title string
---@field spec string
---@field needs? string[]

--- The proposal that waits for a person, or was settled already.
---@class graphd.ReportDiscoveryResult
---@field proposal string

--- `workgraph/reportProgress`: for people's eyes, never for decisions.
---@class graphd.ReportProgressParams
---@field text string

---@alias graphd.Reports
---| "tokens"
---| "cost"
---| "both"
---| "none"
---| "not_applicable"

--- `workgraph/rerun`: the plan as the graph has it now, as a new graph.
---@class graphd.RerunParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.
---@field start? boolean

--- `workgraph/respond`: the first valid answer counts. `actionHash` binds it to what was shown.
---@class graphd.RespondParams
---@field ask string Its id, or the beginning of one.
---@field actionHash string
---@field option? string|nil
---@field text? string|nil
---@field scope? "once"|"attempt"|"graph"
---@field comment? string|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean
---@field settle? boolean

--- `workgraph/resume`.
---@class graphd.ResumeParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.
---@field topUp? graphd.BudgetInput|nil The budget becomes what is spent and this, in the units that it has.

--- Automatic retries.
---@class graphd.Retry
---@field max integer
---@field backoffS number
---@field on graphd.FailureClass[]

--- Automatic retries.
---@class graphd.RetryInput
---@field max? integer
---@field backoffS? number
---@field on? graphd.FailureClass[]

--- `workgraph/retry`: one node, or all.
---@class graphd.RetryParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.
---@field node? string|nil
---@field all? boolean

--- The node's place in a review.
---@class graphd.Review
---@field phase "design"|"diff"
---@field implementationNodeId? string|nil
---@field verificationNodeId? string|nil

--- The node's place in a review.
---@class graphd.ReviewInput
---@field phase "design"|"diff"
---@field implementationNodeId? string|nil
---@field verificationNodeId? string|nil

--- `workgraph/revoke`: a standing answer covers nothing more.
---@class graphd.RevokeParams
---@field ask string
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean
---@field settle? boolean

---@alias graphd.Role
---| "worker"
---| "verifier"
---| "planner"
---| "judge"
---| "hook"
---| "aside"

--- `workgraph/save`: writes `.agents/workflows/NAME.yaml` in the workspace.
---@class graphd.SaveParams
---@field graph? string|nil
---@field name string
---@field force? boolean Put it in the place of a file that is there.
---@field dryRun? boolean Answer with the text, write nothing.

--- The file, and what it says.
---@class graphd.SaveResult
---@field path string
---@field text string

--- `workgraph/set`: exactly one of workflow, file, text and nodes; `file` with `text` are a file's bytes as read.
---
--- So a person's consent covers what was read, not what lies there a moment later (execution.md, Trust 1).
---@class graphd.SetParams
---@field workflow? string|nil
---@field file? string|nil
---@field text? string|nil
---@field nodes? graphd.NodeParams[]|nil
---@field objective? string|nil
---@field inputs? table<string, any>
---@field title? string|nil
---@field owner? string|nil
---@field budget? graphd.BudgetInput|nil Key by key before what the workflow says; the same goes for `limits`.
---@field limits? graphd.LimitsInput|nil
---@field prune? graphd.Pruned[] Nodes that are taken out of the workflow; what they need passes to what needed them.
---@field extend? graphd.NodeParams[] Nodes that are added to the workflow.
---@field deliveryNode? string|nil
---@field onRequiredFailure? "drain"|"stop"|nil
---@field isolation? "none"|"graph"|"node"|nil
---@field onSharedTree? "notice"|"serialise"|nil
---@field finalCheck? boolean|nil
---@field start? boolean
---@field replace? string|nil A graph that is cleared in the same commit.
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean
---@field settle? boolean

--- `workgraph/signal`: to every live graph that has a wait for this name.
---@class graphd.SignalParams
---@field name string
---@field payload? any Any JSON value of at most 64 KiB: the output of what it wakes.
---@field idempotencyKey? string|nil A second signal with this key changes nothing and is answered like the first.

--- Who heard it.
---@class graphd.SignalResult
---@field woke graphd.Signalled[]
---@field kept? graphd.Signalled[] Nodes that do not wait yet: it is kept for each of them.

--- One node that waits.
---@class graphd.Signalled
---@field graph string
---@field node string

---@alias graphd.SkipReason
---| "condition_false"
---| "gate_not_accepted"
---| "no_input"
---| "finished_early"

--- How many attempts may run at once, run, and wait for a slot.
---@class graphd.Slots
---@field limit integer
---@field running integer
---@field queued integer

--- The whole value of a graph at one rev; version 2 of the interchange form.
---@class graphd.Snapshot
---@field id string
---@field owner? string|nil
---@field title string
---@field objective string
---@field status graphd.GraphStatus
---@field pauseReason? string|nil
---@field outcome? graphd.Outcome|nil
---@field stopping? graphd.Stopping|nil
---@field stepping? string|nil The one node that may start, until it is settled.
---@field planVersion integer
---@field rev integer
---@field counts table<string, integer> How many nodes are in each state; states without any are left out.
---@field spent graphd.Spending
---@field limits graphd.Limits
---@field budget? graphd.Budget|nil
---@field terms? graphd.Terms|nil Left out where they are the usual ones.
---@field workspace string
---@field source graphd.Source
---@field deliveryNode? string|nil Its output is the graph's result.
---@field createdAt integer
---@field updatedAt integer
---@field nodes graphd.Node[]
---@field proposals? table<string, any>[] Each a `Proposal`: edits that wait for acceptance.
---@field asks graphd.Ask[] The open ones.
---@field history graphd.HistoryEntry[] The last 64.

--- Where the plan came from.
---@class graphd.Source
---@field kind "workflow"|"file"|"text"|"nodes"
---@field name? string|nil
---@field path? string|nil
---@field sha256? string|nil

--- What a graph used: settled attempts of every role. `wallMs` is time in which at least one node ran.
---@class graphd.Spending
---@field tokens integer
---@field costUsd number|nil
---@field wallMs integer
---@field costIsPartial boolean Some cost is not known: `costUsd` is what is known of it.
---@field roles table<string, graphd.Spent> The same by role; wall time is the attempts' own there.

--- What was used; `costUsd` null means unknown.
---@class graphd.Spent
---@field tokens integer
---@field costUsd number|nil
---@field wallMs integer

--- `workgraph/step`: one node, by default the next in order.
---@class graphd.StepParams
---@field graph? string|nil
---@field expectedRev? integer|nil Refused with `conflict` where the graph is at another one.
---@field expectedPlan? integer|nil
---@field requestId? string|nil Applied once, whatever happens to the connection.
---@field dryRun? boolean Answer with a `preview`, change nothing.
---@field settle? boolean Answer when the last process has ended, or after a while.
---@field node? string|nil

--- `graphd/stop`: leave keeps the children with their keepers, cancel ends all graphs first.
---@class graphd.StopParams
---@field mode? "leave"|"cancel"

---@alias graphd.StopVerb
---| "budget"
---| "pause"
---| "cancel"
---| "clear"

--- A running node whose process ends first; what it is then.
---@class graphd.StoppedNode
---@field node string
---@field then graphd.NodeState

--- A stop that was wished for; `left` names the nodes whose trees are not yet proven empty.
---@class graphd.Stopping
---@field verb graphd.StopVerb
---@field by string
---@field at integer
---@field left string[]

--- `graphd/stopping`, the last frame of a connection.
---@class graphd.StoppingNotice
---@field reason string
---@field reconnect boolean

--- `workgraph/submitResult`: what the attempt made. A text, or any JSON value; the last one of a turn counts.
---@class graphd.SubmitResultParams
---@field output any

--- `workgraph/subscribe`.
---@class graphd.SubscribeParams
---@field graphs? string[]|nil Left out: all, later ones too.
---@field since? table<string, integer>|nil The rev held of each graph, after a lost connection.
---@field store? string|nil The store that these revs are of.
---@field activity? boolean
---@field output? graphd.NodeRef[]

--- A subscription, and the values to start from.
---@class graphd.SubscribeResult
---@field subscription string
---@field store string
---@field graphs graphd.Changed[]

--- What a graph was set under, beside limits and budget.
---@class graphd.Terms
---@field mode "standard"|"deep"
---@field admission? string|nil SHA-256 of the brief that a deep run started from.
---@field onRequiredFailure "drain"|"stop"
---@field isolation "none"|"graph"|"node"
---@field onSharedTree "notice"|"serialise"
---@field finalCheck boolean
---@field pruned? graphd.Pruned[]

--- What is left of a graph that was cleared.
---@class graphd.Tombstone
---@field id string
---@field rev integer

--- Something that can be done with a row.
---@class graphd.TreeCommand
---@field title string
---@field command string As in `workspace/executeCommand`.
---@field arguments table<string, any>[]
---@field enabled boolean The state admits it now; a client shows others greyed.

--- `workgraph/tree`: without params the graphs, with a graph its nodes, with a node too its attempts.
---@class graphd.TreeParams
---@field graph? string|nil
---@field node? string|nil

--- One row of a tree view. A client draws it as it stands and asks again, with what the row names, to open it.
---@class graphd.TreeRow
---@field id string Stable over time: `graph`, `graph/node` or `graph/node@attempt`.
---@field label string
---@field description string
---@field icon string A codicon's name.
---@field state string A graph's status, a node's state or an attempt's state.
---@field collapsible "none"|"collapsed"|"expanded"
---@field contextValue string `graph.<status>`, `node.<state>`, `attempt.<state>` or `more`.
---@field commands graphd.TreeCommand[]

--- `workgraph/unsubscribe`.
---@class graphd.UnsubscribeParams
---@field subscription string

--- `workgraph/validate`.
---@class graphd.ValidateResult
---@field diagnostics graphd.Diagnostic[]

---@alias graphd.Verdict
---| "ACCEPT"
---| "REVISE"
---| "REJECT"
---| "BLOCKED"
---| "REPLAN"

--- How a result is checked: a command, or a worker with criteria.
---@class graphd.Verify
---@field run? string|nil
---@field worker? string|nil
---@field criteria string

--- How a result is checked: a command, or a worker with criteria.
---@class graphd.VerifyInput
---@field run? string|nil
---@field worker? string|nil
---@field criteria? string

--- The node has no worker: it settles at a time (`until`), or by a signal.
---@class graphd.Wait
---@field until? string|nil
---@field signal? string|nil
---@field timeoutS? number|nil

--- The node has no worker: it settles at a time (`until`), or by a signal.
---@class graphd.WaitInput
---@field until? string|nil
---@field signal? string|nil
---@field timeoutS? number|nil

--- Seconds in which an attempt's clock stood still: for a person, and for a provider's rest.
---@class graphd.Waited
---@field person number
---@field provider number

--- One reason why a node or a graph is where it is, and what to type next.
---@class graphd.Why
---@field code string
---@field since? integer|nil
---@field on? string|nil
---@field detail string
---@field next string

--- What a connection may send at most.
---@class graphd.WireLimits
---@field headerBytes integer
---@field bodyBytes integer
---@field depth integer
---@field bodySeconds integer
---@field requests integer
---@field connections integer

--- One workflow that can be run by name.
---@class graphd.WorkflowEntry
---@field name string
---@field title string
---@field path string
---@field source "workspace"|"user"|"bundled"
---@field shadows string[] Files of the same name that this one stands before.
---@field inputs table<string, graphd.DeclaredInput>
---@field isValid boolean

--- A workflow by its file or its text.
---@class graphd.WorkflowParams
---@field file? string|nil
---@field text? string|nil
---@field inputs? table<string, any>

--- Every request: its params and its result.
---@class graphd.Requests
---@field ["graphd/hello"] fun(params: graphd.HelloParams): graphd.HelloResult Who connects, and what both sides speak. The first request of every connection.
---@field ["graphd/health"] fun(): graphd.Health How the daemon does, and what it holds for each connection.
---@field ["graphd/capacity"] fun(): graphd.Capacity Whether more would start now, and why not.
---@field ["graphd/doctor"] fun(params: graphd.DoctorParams): graphd.Check[] What can be checked from inside, and how to mend it.
---@field ["graphd/stop"] fun(params: graphd.StopParams): graphd.Empty End the daemon: `leave` keeps the children with their keepers, `cancel` ends all graphs first.
---@field ["graphd/handover"] fun(params: graphd.HandoverParams): graphd.Empty Give the workspace to a newer version: stop, keep the children, and let clients come back.
---@field ["workgraph/set"] fun(params: graphd.SetParams): graphd.MutationResult Check a plan, freeze it, start it: exactly one of `workflow`, `file`, `text` and `nodes`.
---@field ["workgraph/pause"] fun(params: graphd.PauseParams): graphd.MutationResult Start nothing more; with mode `stop`, end what runs and put it back to ready.
---@field ["workgraph/resume"] fun(params: graphd.ResumeParams): graphd.MutationResult Go on; with `topUp` under a budget that allows so much more.
---@field ["workgraph/step"] fun(params: graphd.StepParams): graphd.MutationResult Start one node, and pause when it is settled.
---@field ["workgraph/extendTimeout"] fun(params: graphd.ExtendTimeoutParams): graphd.MutationResult Move the deadline of a running node on.
---@field ["workgraph/retry"] fun(params: graphd.RetryParams): graphd.MutationResult Try one node again with what hung on it, or all that failed or is blocked.
---@field ["workgraph/cancel"] fun(params: graphd.CancelParams): graphd.MutationResult Stop all and settle the rest; `cancelled` once the last process tree is proven empty.
---@field ["workgraph/clear"] fun(params: graphd.ClearParams): graphd.MutationResult As cancel, then a tombstone.
---@field ["workgraph/extend"] fun(params: graphd.ExtendParams): graphd.MutationResult Add nodes, as a new plan version; a complete graph opens again.
---@field ["workgraph/replan"] fun(params: graphd.ReplanParams): graphd.MutationResult Add, change, remove, restart and cancel nodes, as one plan version.
---@field ["workgraph/apply"] fun(params: graphd.ApplyParams): graphd.MutationResult What changed in a workflow file since its graph was started, as a proposal; none where nothing did.
---@field ["workgraph/accept"] fun(params: graphd.AcceptParams): graphd.MutationResult Carry a proposal out as one replan, checked anew.
---@field ["workgraph/dismiss"] fun(params: graphd.DismissParams): graphd.MutationResult A proposal is not wanted.
---@field ["workgraph/rerun"] fun(params: graphd.RerunParams): graphd.MutationResult The plan of a graph, as it is now, as a new graph.
---@field ["workgraph/save"] fun(params: graphd.SaveParams): graphd.SaveResult Write the plan of a graph as a workflow file; never over another one unless `force` says so.
---@field ["workgraph/finish"] fun(params: graphd.FinishParams): graphd.MutationResult Skip what has not started, let what runs end.
---@field ["workgraph/release"] fun(params: graphd.ReleaseParams): graphd.MutationResult A person declares a stuck process tree dead, naming exactly its pids.
---@field ["workgraph/hold"] fun(params: graphd.NodeRef): graphd.HoldResult Pause a node, and open its agent's session: it is held until this connection ends, then it goes on there.
---@field ["workgraph/asks"] fun(params: graphd.AsksParams): graphd.Ask[] What waits for a person, oldest first; or what stands.
---@field ["workgraph/respond"] fun(params: graphd.RespondParams): graphd.MutationResult Answer an ask; the first valid answer counts.
---@field ["workgraph/revoke"] fun(params: graphd.RevokeParams): graphd.MutationResult A standing answer covers nothing more.
---@field ["workgraph/signal"] fun(params: graphd.SignalParams): graphd.SignalResult Something happened outside: wake what waits for it, keep it for what will.
---@field ["workgraph/submitResult"] fun(params: graphd.SubmitResultParams): graphd.Empty Hand in the result of the running turn: it counts over what the attempt says. Durable before the answer.
---@field ["workgraph/reportProgress"] fun(params: graphd.ReportProgressParams): graphd.Empty Say how far the attempt is.
---@field ["workgraph/reportDiscovery"] fun(params: graphd.ReportDiscoveryParams): graphd.ReportDiscoveryResult Propose a node for work that the attempt found; a person accepts or dismisses it.
---@field ["workgraph/askParent"] fun(params: graphd.AskParentParams): graphd.AskParentResult Ask people something, and wait for the answer.
---@field ["workgraph/readInput"] fun(params: graphd.ReadInputParams): graphd.ReadInputResult Bytes of an input of the attempt.
---@field ["workgraph/list"] fun(params: graphd.ListParams): graphd.ListResult Headers of graphs, newest first.
---@field ["workgraph/status"] fun(params: graphd.GraphParams): graphd.Snapshot|nil The whole graph; null for one that was cleared, or where there is none and none was named.
---@field ["workgraph/node"] fun(params: graphd.NodeRef): graphd.NodeResult A node with its attempts, oldest first, and the deliveries about it.
---@field ["workgraph/subscribe"] fun(params: graphd.SubscribeParams): graphd.SubscribeResult The values to start from; `workgraph/changed` goes on from them.
---@field ["workgraph/unsubscribe"] fun(params: graphd.UnsubscribeParams): graphd.UnsubscribeParams End a subscription.
---@field ["workgraph/history"] fun(params: graphd.HistoryParams): graphd.HistoryResult Events of whole revs after a rev, oldest first.
---@field ["workgraph/why"] fun(params: graphd.NodeRef): graphd.Why[] Why a node is where it is, and what to type next.
---@field ["workgraph/output"] fun(params: graphd.OutputParams): graphd.OutputResult Bytes of a result.
---@field ["workgraph/observe"] fun(params: graphd.ObserveParams): graphd.ObserveResult What an attempt printed after a cursor.
---@field ["workgraph/diff"] fun(params: graphd.DiffParams): graphd.DiffResult What an agent's attempt changed in the git work tree, until now while it runs; who worked there meanwhile.
---@field ["workgraph/processes"] fun(): graphd.ProcessEntry[] The process trees that we keep, and what they cost.
---@field ["workgraph/workflows"] fun(): graphd.WorkflowEntry[] Every workflow that can be run by name.
---@field ["workgraph/validate"] fun(params: graphd.WorkflowParams): graphd.ValidateResult Every finding in a workflow file, in the order of its text.
---@field ["workgraph/explain"] fun(params: graphd.WorkflowParams): graphd.ExplainResult The compiled nodes in the long form, and what can run together.
---@field ["workgraph/export"] fun(params: graphd.ExportParams): graphd.ExportResult The whole graph as `workgraph/change` lines.
---@field ["workgraph/import"] fun(params: graphd.ImportParams): graphd.MutationResult Make the graph that such lines come to; an active one becomes user_paused.
---@field ["workgraph/purge"] fun(params: graphd.PurgeParams): graphd.PurgeResult Remove ended graphs with their files, or only the files.
---@field ["workgraph/deliveries"] fun(params: graphd.DeliveriesParams): graphd.DeliveriesResult What an owner has not acknowledged, oldest first.
---@field ["workgraph/acknowledge"] fun(params: graphd.AcknowledgeParams): graphd.AcknowledgeResult These deliveries are not sent again.
---@field ["workgraph/agents"] fun(params: graphd.AgentsParams): graphd.AgentEntry[] Profiles, whether their programs are installed, and which workers they serve.
---@field ["workgraph/tree"] fun(params: graphd.TreeParams): graphd.TreeRow[] Rows of a tree view: graphs, the nodes of one, the attempts of a node.
---@field ["workgraph/picture"] fun(params: graphd.PictureParams): graphd.Picture A layered drawing and its twin in words.

--- Every notification of the daemon: its params.
---@class graphd.Notifications
---@field ["workgraph/changed"] graphd.Changed All that changed in a graph between two revs, after its commit.
---@field ["workgraph/activity"] graphd.Activity What running nodes do right now. Volatile: latest wins.
---@field ["workgraph/asks"] graphd.AsksNotice Questions that came, and those that need no answer any more.
---@field ["workgraph/output"] graphd.OutputChunk What an attempt prints, where a subscription asked for it.
---@field ["graphd/stopping"] graphd.StoppingNotice The last frame before the daemon ends the connection.

--- The name of an error, in `data.code`.
---@alias graphd.ErrorName
---| "parseError" # -32700
---| "invalidRequest" # -32600
---| "methodNotFound" # -32601
---| "invalidParams" # -32602
---| "internalError" # -32603
---| "notGreeted" # -32002
---| "requestCancelled" # -32800
---| "notFound" # -32050
---| "alreadyExists" # -32051
---| "invalidObjective" # -32052
---| "invalidBudget" # -32053
---| "invalidPlan" # -32054
---| "invalidTransition" # -32055
---| "upstreamNotAchieved" # -32056
---| "conflict" # -32057
---| "staleAttempt" # -32058
---| "staleInput" # -32059
---| "capacity" # -32060
---| "unauthorised" # -32061
---| "untrusted" # -32062
---| "agentMissing" # -32063
---| "malformedLog" # -32064
---| "locked" # -32065
---| "storeUnavailable" # -32066
---| "protocolMismatch" # -32067
---| "askGone" # -32068
---| "overloaded" # -32070
---| "inputMissing" # -32071
---| "childInputRefused" # -32072
---| "ambiguous" # -32075
---| "unsavedChanges" # -32076
---| "agentFailed" # -32077
---| "cursorInvalid" # -32078
---| "tooLarge" # -32079
---| "notSupported" # -32080
---| "requestIdReused" # -32081
---| "stuck" # -32082
