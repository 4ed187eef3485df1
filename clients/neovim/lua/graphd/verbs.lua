--- What can be done with graphs and nodes: the daemon's verbs, and the commands that lenses, actions and rows carry.
---
--- A target is `{graph?, node?, attempt?}` in the words of requests; without a graph the daemon takes the only live one,
--- and where there are several the person chooses.
local say = require('graphd.say')
local t = require('graphd.text').t

local M = {}

---@class graphd.nvim.Target
---@field graph? string
---@field node? string
---@field attempt? integer

--- Those of the daemon's commands that are carried out here.
M.COMMANDS = {
  'graphd.run',
  'graphd.apply',
  'graphd.pause',
  'graphd.resume',
  'graphd.cancel',
  'graphd.retry',
  'graphd.openOutput',
  'graphd.answer',
}

local function choose_graph(graphs, done)
  local function title(graph)
    return ('%s  (%s)'):format(graph.title, graph.status)
  end
  require('graphd.choice').open(graphs, { prompt = t('Which graph?'), format_item = title }, function(graph)
    if graph then
      done(graph.id)
    end
  end)
end

--- Sends a request about a graph; where its name fits several, again with the one that the person chooses.
---@param session graphd.nvim.Session
---@param method string
---@param params table
---@param done fun(result: any)
---@param send? 'call'|'change' `change`: it is applied once.
function M.ask(session, method, params, done, send)
  session[send or 'call'](session, method, params, function(trouble, result)
    local facts = trouble and type(trouble.data) == 'table' and trouble.data or {}
    if facts.code == 'ambiguous' and facts.graphs and #facts.graphs > 0 then
      choose_graph(facts.graphs, function(graph)
        M.ask(session, method, vim.tbl_extend('force', params, { graph = graph }), done, send)
      end)
    elseif trouble then
      say.refused(trouble)
    else
      done(result)
    end
  end)
end

local function change(session, method, params, done)
  M.ask(session, method, params, done, 'change')
end

local function title_of(session, graph)
  local held = session.mirror.graphs[graph]
  return held and held.header.title or graph
end

local function graph_of(target)
  return { graph = target.graph }
end

-- ---- files -----------------------------------------------------------------------------------------------------------

--- What runs is what is in the file: a buffer with changes is written first.
local function write_first(path)
  local buffer = vim.fn.bufnr(path)
  if buffer ~= -1 and vim.bo[buffer].modified then
    vim.api.nvim_buf_call(buffer, function()
      vim.cmd('silent update')
    end)
    say.tell(t('saved {name}', { name = vim.fs.basename(path) }))
  end
end

--- Starts a graph from a file or from a workflow's name.
---@param session graphd.nvim.Session
---@param source {file?: string, workflow?: string, inputs?: table<string, string>}
---@param done? fun(result: graphd.MutationResult)
function M.run(session, source, done)
  if source.file then
    write_first(source.file)
  end
  session:change('workgraph/set', source, function(trouble, result)
    local facts = trouble and type(trouble.data) == 'table' and trouble.data or {}
    if facts.code == 'inputMissing' and facts.inputs and #facts.inputs > 0 then
      return M.ask_input(session, source, facts.inputs[1], done)
    elseif trouble then
      return say.refused(trouble)
    end
    say.tell(t('started {title}', { title = title_of(session, result.graph) }))
    if done then
      done(result)
    end
  end)
end

--- One input that is missing; the next one is asked for when the daemon says so.
function M.ask_input(session, source, name, done)
  vim.ui.input({ prompt = t('Input {name}: ', { name = name }) }, function(value)
    if value then
      local inputs = vim.tbl_extend('force', source.inputs or {}, { [name] = value })
      M.run(session, vim.tbl_extend('force', source, { inputs = inputs }), done)
    end
  end)
end

--- What changed in a file since its graph was started, shown before it is accepted.
---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
---@param file string
function M.apply(session, target, file)
  write_first(file)
  change(session, 'workgraph/apply', { graph = target.graph, file = file }, function(result)
    if not result.proposal then
      return say.tell(t('nothing in the plan has changed'))
    end
    require('graphd.plan').show(session, result)
  end)
end

-- ---- verbs of graphs -------------------------------------------------------------------------------------------------

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.pause(session, target)
  change(session, 'workgraph/pause', graph_of(target), function(result)
    say.tell(t('{title}: paused', { title = title_of(session, result.graph) }))
  end)
end

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.resume(session, target)
  change(session, 'workgraph/resume', graph_of(target), function(result)
    say.tell(t('{title}: goes on', { title = title_of(session, result.graph) }))
  end)
end

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.step(session, target)
  change(session, 'workgraph/step', { graph = target.graph, node = target.node }, function(result)
    say.tell(t('{title}: one step', { title = title_of(session, result.graph) }))
  end)
end

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.retry(session, target)
  local which = target.node and { node = target.node } or { all = true }
  change(session, 'workgraph/retry', vim.tbl_extend('force', which, graph_of(target)), function(result)
    say.tell(t('{title}: tried again', { title = target.node or title_of(session, result.graph) }))
  end)
end

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.cancel(session, target)
  local title = target.graph and title_of(session, target.graph) or t('the graph')
  local question = t('Cancel {title}? What runs is ended, and it cannot be resumed.', { title = title })
  say.confirm(question, t('Cancel it'), function()
    change(session, 'workgraph/cancel', graph_of(target), function(result)
      say.tell(t('{title}: cancelled', { title = title_of(session, result.graph) }))
    end)
  end)
end

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.clear(session, target)
  local title = target.graph and title_of(session, target.graph) or t('the graph')
  say.confirm(
    t('Clear {title}? It ends, and nothing of it is kept.', { title = title }),
    t('Clear it'),
    function()
      change(session, 'workgraph/clear', graph_of(target), function()
        say.tell(t('{title}: cleared', { title = title }))
      end)
    end
  )
end

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
---@param reason? string
function M.finish(session, target, reason)
  local function finish(given)
    if given and given ~= '' then
      change(session, 'workgraph/finish', { graph = target.graph, reason = given }, function(result)
        say.tell(t('{title}: finishes', { title = title_of(session, result.graph) }))
      end)
    end
  end
  if reason then
    return finish(reason)
  end
  vim.ui.input({ prompt = t('Finish it, because: ') }, finish)
end

---@param session graphd.nvim.Session
---@param proposal? string
---@param verb 'accept'|'dismiss'
---@param target graphd.nvim.Target
function M.settle(session, verb, target, proposal)
  local params = { graph = target.graph, proposal = proposal }
  change(session, 'workgraph/' .. verb, params, function()
    say.tell(verb == 'accept' and t('the plan is changed') or t('the proposal is dismissed'))
  end)
end

--- The plan of a graph as a new graph.
---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.rerun(session, target)
  change(session, 'workgraph/rerun', graph_of(target), function(result)
    say.tell(t('started {title}', { title = title_of(session, result.graph) }))
  end)
end

--- The plan of a graph as a workflow file, which is opened then.
---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
---@param name string
function M.save(session, target, name)
  M.ask(session, 'workgraph/save', { graph = target.graph, name = name }, function(result)
    vim.cmd.edit(vim.fn.fnameescape(result.path))
  end)
end

--- Something happened outside: what waits for it goes on.
---@param session graphd.nvim.Session
---@param name string
function M.signal(session, name)
  M.ask(
    session,
    'workgraph/signal',
    { name = name, idempotencyKey = session.number_used_once() },
    function(result)
      say.tell(t('{name}: {count} woken', { name = name, count = #(result.woke or {}) }))
    end
  )
end

-- ---- nodes -----------------------------------------------------------------------------------------------------------

--- Calls `done` with a target that names a node: the given one, or the person's choice among what is known.
---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
---@param done fun(target: graphd.nvim.Target)
function M.with_node(session, target, done)
  if target.node then
    return done(target)
  end
  local live = session.mirror:live()
  local held = target.graph and session.mirror.graphs[target.graph] or #live == 1 and live[1] or nil
  if not held then
    return say.warn(t('name a node, or put the cursor on one'))
  end
  require('graphd.choice').open(held.order, { prompt = t('Which node?') }, function(node)
    if node then
      done({ graph = held.header.id, node = node })
    end
  end)
end

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.why(session, target)
  M.with_node(session, target, function(found)
    M.ask(session, 'workgraph/why', { graph = found.graph, node = found.node }, function(reasons)
      require('graphd.reading').why(session, found, reasons)
    end)
  end)
end

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.diff(session, target)
  M.with_node(session, target, function(found)
    local asked = { graph = found.graph, node = found.node, attempt = found.attempt }
    M.ask(session, 'workgraph/diff', asked, function(result)
      require('graphd.reading').diff(session, found, result)
    end)
  end)
end

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.output(session, target)
  M.with_node(session, target, function(found)
    require('graphd.output').result(session, found)
  end)
end

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.logs(session, target)
  M.with_node(session, target, function(found)
    require('graphd.output').follow(session, found)
  end)
end

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.show(session, target)
  require('graphd.picture').show(session, graph_of(target))
end

-- ---- commands of lenses, actions and rows ----------------------------------------------------------------------------

local function file_of(session, argument)
  if argument.uri then
    return vim.uri_to_fname(argument.uri)
  end
  local held = session.mirror.graphs[argument.graph]
  return held and held.header.source.path
end

--- Carries out a command with its argument, as `workspace/executeCommand` would.
---@param session graphd.nvim.Session
---@param name string
---@param argument {uri?: string, graph?: string, node?: string, attempt?: integer, all?: boolean, inputs?: table}
function M.execute(session, name, argument)
  local verb = name:gsub('^graphd%.', '')
  local target = { graph = argument.graph, node = argument.node, attempt = argument.attempt }
  if verb == 'run' then
    M.run(session, { file = file_of(session, argument), inputs = argument.inputs })
  elseif verb == 'apply' then
    M.apply(session, target, file_of(session, argument))
  elseif verb == 'openOutput' then
    require('graphd.output').open(session, target)
  elseif verb == 'answer' then
    require('graphd.asks').respond(session, argument)
  else
    M[verb](session, target)
  end
end

return M
