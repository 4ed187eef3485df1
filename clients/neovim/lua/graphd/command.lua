--- `:Graphd VERB …`: what is meant is named, or taken from the tree's cursor, the window, or the workflow file.
local t = require('graphd.text').t

local M = {}

---@class graphd.nvim.Word A verb of the command.
---@field says string For the list of verbs.
---@field takes? ('graph'|'node'|'workflow'|'file'|'proposal'|'name')[]
---@field act fun(session: graphd.nvim.Session, words: string[])

local function verbs()
  return require('graphd.verbs')
end

-- ---- what is meant ---------------------------------------------------------------------------------------------------

--- The node whose definition the cursor is in: the nearest `id:` above that the graph knows.
local function node_at_cursor(held)
  local last = vim.api.nvim_win_get_cursor(0)[1]
  local lines = vim.api.nvim_buf_get_lines(0, 0, last, false)
  for number = #lines, 1, -1 do
    local slug = lines[number]:match('[%s{%-,]id:%s*["\']?([%w_%-]+)')
    if slug then
      return held.nodes[slug] and slug or nil
    end
  end
end

--- What the current buffer is about.
---@param session graphd.nvim.Session
---@return graphd.nvim.Target
local function here(session)
  local buffer = vim.api.nvim_get_current_buf()
  local own = vim.b[buffer].graphd
  if own then
    local tree = package.loaded['graphd.tree']
    return tree and tree.target(buffer) or { graph = own.graph, node = own.node, attempt = own.attempt }
  end
  local path = vim.uv.fs_realpath(vim.api.nvim_buf_get_name(buffer))
  local held = path and session.mirror:from_file(path)
  return held and { graph = held.header.id, node = node_at_cursor(held) } or {}
end

local function graph_target(session, name)
  return { graph = name or here(session).graph }
end

--- `NODE`, `NODE@2` and, behind it, a graph.
local function node_target(session, words)
  local found = here(session)
  if words[1] then
    local node, attempt = words[1]:match('^(.*)@(%d+)$')
    return { graph = words[2] or found.graph, node = node or words[1], attempt = tonumber(attempt) }
  end
  return found
end

--- Nodes need their graph's id here: the only live one where none is meant.
local function with_graph(session, target)
  local live = session.mirror:live()
  if not target.graph and #live == 1 then
    target.graph = live[1].header.id
  end
  return target
end

--- The file that is meant: a named one, else the one in the window.
local function file_here(name)
  local path = name or vim.api.nvim_buf_get_name(0)
  return vim.fn.fnamemodify(path, ':p')
end

local function inputs_of(words)
  local inputs
  for index = 2, #words do
    local name, value = words[index]:match('^([%w_%-]+)=(.*)$')
    if name then
      inputs = inputs or {}
      inputs[name] = value
    end
  end
  return inputs
end

local function run(session, words)
  local name = words[1]
  if name and not name:find('[/.]') then
    return verbs().run(session, { workflow = name, inputs = inputs_of(words) })
  end
  local path = file_here(name)
  if not path:match('%.ya?ml$') then
    return M.choose_workflow(session)
  end
  verbs().run(session, { file = path, inputs = inputs_of(words) })
end

--- Without a name, and away from a workflow file: what there is.
function M.choose_workflow(session)
  session:call('workgraph/workflows', nil, function(trouble, workflows)
    if trouble then
      return require('graphd.say').refused(trouble)
    end
    local function title(one)
      return one.title ~= '' and one.title ~= one.name and ('%s  %s'):format(one.name, one.title) or one.name
    end
    require('graphd.choice').open(
      workflows,
      { prompt = t('Which workflow?'), format_item = title },
      function(one)
        if one then
          verbs().run(session, { workflow = one.name })
        end
      end
    )
  end)
end

-- ---- the verbs -------------------------------------------------------------------------------------------------------

local function of_graph(verb)
  return function(session, words)
    verbs()[verb](session, graph_target(session, words[1]))
  end
end

local function of_node(verb)
  return function(session, words)
    verbs()[verb](session, with_graph(session, node_target(session, words)))
  end
end

local function settle(verb)
  return function(session, words)
    local target = graph_target(session)
    local held = target.graph and session.mirror.graphs[target.graph] or session.mirror:live()[1]
    local proposal = words[1] or held and held.proposals[1] and held.proposals[1].id
    if not proposal then
      return require('graphd.say').tell(t('no proposal waits'))
    end
    verbs().settle(session, verb, { graph = not words[1] and held.header.id or target.graph }, proposal)
  end
end

local function retry(session, words)
  if words[1] == '--all' then
    return verbs().retry(session, graph_target(session, words[2]))
  end
  verbs().retry(session, words[1] and node_target(session, words) or here(session))
end

--- Verbs that need a word.
local function named(verb)
  return function(session, words)
    if not words[1] then
      return require('graphd.say').warn(t('{verb} needs a name', { verb = verb }))
    elseif verb == 'save' then
      return verbs().save(session, graph_target(session), words[1])
    end
    verbs().signal(session, words[1])
  end
end

local function tree(session)
  require('graphd.tree').open(session)
end

local function show_log()
  vim.cmd.tabedit(vim.fn.fnameescape(vim.lsp.log.get_filename()))
end

---@type table<string, graphd.nvim.Word>
local WORDS = {
  run = {
    says = t('start a workflow: by name, by file, or the file in this window'),
    takes = { 'workflow' },
    act = run,
  },
  apply = {
    says = t('show what the changed file does to its running graph'),
    takes = { 'file' },
    act = function(session, words)
      verbs().apply(session, here(session), file_here(words[1]))
    end,
  },
  accept = { says = t('accept a proposal'), takes = { 'proposal' }, act = settle('accept') },
  dismiss = { says = t('dismiss a proposal'), takes = { 'proposal' }, act = settle('dismiss') },
  tree = { says = t('the tree of graphs, nodes and attempts'), act = tree },
  open = { says = t('the tree of graphs, nodes and attempts'), act = tree },
  status = {
    says = t('the graphs of this workspace, one a line'),
    act = function(session)
      require('graphd.reading').status(session)
    end,
  },
  show = { says = t('the graph as a drawing'), takes = { 'graph' }, act = of_graph('show') },
  output = { says = t('the result of a node'), takes = { 'node', 'graph' }, act = of_node('output') },
  logs = { says = t('what a node prints, as it comes'), takes = { 'node', 'graph' }, act = of_node('logs') },
  follow = { says = t('what a node prints, as it comes'), takes = { 'node', 'graph' }, act = of_node('logs') },
  why = { says = t('why a node is where it is'), takes = { 'node', 'graph' }, act = of_node('why') },
  diff = { says = t('what the node changed'), takes = { 'node', 'graph' }, act = of_node('diff') },
  pause = { says = t('start nothing more'), takes = { 'graph' }, act = of_graph('pause') },
  resume = { says = t('go on'), takes = { 'graph' }, act = of_graph('resume') },
  step = {
    says = t('start one node, then pause'),
    takes = { 'node', 'graph' },
    act = function(session, words)
      verbs().step(session, words[1] and node_target(session, words) or graph_target(session))
    end,
  },
  retry = {
    says = t('try a node again, or all that failed: --all'),
    takes = { 'node', 'graph' },
    act = retry,
  },
  cancel = { says = t('end a graph'), takes = { 'graph' }, act = of_graph('cancel') },
  clear = { says = t('end a graph and forget it'), takes = { 'graph' }, act = of_graph('clear') },
  finish = {
    says = t('skip what has not started, let what runs end'),
    takes = { 'name' },
    act = function(session, words)
      verbs().finish(session, graph_target(session), #words > 0 and table.concat(words, ' ') or nil)
    end,
  },
  rerun = { says = t('the plan of a graph as a new graph'), takes = { 'graph' }, act = of_graph('rerun') },
  save = { says = t('write the plan of a graph as a workflow file'), takes = { 'name' }, act = named('save') },
  signal = { says = t('wake what waits for a signal'), takes = { 'name' }, act = named('signal') },
  asks = {
    says = t('answer what agents ask'),
    act = function(session)
      require('graphd.asks').open(session)
    end,
  },
  answer = {
    says = t('answer what agents ask'),
    act = function(session)
      require('graphd.asks').open(session)
    end,
  },
  restart = {
    says = t('connect again'),
    act = function(session)
      session:close()
      session:start()
    end,
  },
  log = { says = t('the log of the connection'), act = show_log },
  info = {
    says = t('check the installation'),
    act = function()
      vim.cmd.checkhealth('graphd')
    end,
  },
}

--- Verbs that say something of a connection that is not there.
local QUIET = { restart = true, log = true, info = true }

---@param words string[]
function M.run(words)
  local verb = words[1] or 'tree'
  local word = WORDS[verb]
  if not word then
    local said =
      t('{name} is no verb of :Graphd; see {help}', { name = verb, help = ':help graphd-commands' })
    return require('graphd.say').warn(said)
  end
  local workspace = require('graphd.workspace')
  local session = QUIET[verb] and workspace.session(workspace.root_of()) or workspace.current()
  word.act(session, vim.list_slice(words, 2))
end

--- The verbs and what each does, for the help and its test.
---@return table<string, string>
function M.verbs()
  return vim.tbl_map(function(word)
    return word.says
  end, WORDS)
end

-- ---- completion ------------------------------------------------------------------------------------------------------

local function workflow_names(session)
  local names = {}
  for _, file in ipairs(vim.fn.glob(session.root .. '/.agents/workflows/*.y*ml', false, true)) do
    table.insert(names, vim.fn.fnamemodify(file, ':t:r'))
  end
  return names
end

local OFFERS = {
  graph = function(session)
    local names = { '@last' }
    for id in pairs(session.mirror.graphs) do
      table.insert(names, id)
    end
    return names
  end,
  node = function(session)
    local names = {}
    local graph = here(session).graph
    local live = session.mirror:live()
    local held = graph and session.mirror.graphs[graph] or live[1]
    vim.list_extend(names, held and held.order or {})
    return names
  end,
  workflow = workflow_names,
  file = function()
    return vim.fn.getcompletion('*.yaml', 'file')
  end,
  proposal = function(session)
    local names = {}
    for _, held in pairs(session.mirror.graphs) do
      for _, proposal in ipairs(held.proposals) do
        table.insert(names, proposal.id)
      end
    end
    return names
  end,
}

--- Never asks the daemon: what is known now is offered.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local words = vim.split(vim.trim(line), '%s+')
  local place = #words - (lead == '' and 0 or 1)
  local names
  if place <= 1 then
    names = vim.tbl_keys(WORDS)
  else
    local word = WORDS[words[2]]
    local kind = word and word.takes and word.takes[place - 1]
    local session = require('graphd.workspace').session(require('graphd.workspace').root_of())
    names = OFFERS[kind] and OFFERS[kind](session) or {}
  end
  return vim.fn.sort(vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, names))
end

return M
