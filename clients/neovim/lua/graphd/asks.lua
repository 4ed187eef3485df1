--- Questions of agents: told when they come, answered by a choice, gone when anybody has answered them.
local choice = require('graphd.choice')
local say = require('graphd.say')
local t = require('graphd.text').t

local M = {}

---@class graphd.nvim.Shown The question that is on the screen.
---@field ask string
---@field close fun()

-- The notice that says who answered comes right after the change; after an absence there is only the change.
local NOTICE_MS = 300

---@type graphd.nvim.Shown?
local shown

--- What is asked, by whom, and what it would do.
---@param ask graphd.Ask
---@return string
function M.words(ask)
  local action = type(ask.action) == 'table' and ask.action or {}
  local does = action.command or type(action.paths) == 'table' and table.concat(action.paths, ', ') or ''
  local detail = does ~= '' and not ask.title:find(does, 1, true) and ': ' .. does or ''
  local what = ask.title .. detail
  return ask.node and t('{node} asks: {what}', { node = ask.node, what = what }) or what
end

local function is_open(session, id)
  return vim.iter(session.mirror:asks()):any(function(ask)
    return ask.id == id
  end)
end

-- ---- answering -------------------------------------------------------------------------------------------------------

--- Sends an answer; the first valid one counts, whoever gives it.
---@param session graphd.nvim.Session
---@param answer graphd.RespondParams
function M.respond(session, answer)
  session:change('workgraph/respond', answer, function(trouble)
    local facts = trouble and type(trouble.data) == 'table' and trouble.data or {}
    if facts.code == 'askGone' then
      say.tell(facts.by and t('already answered by {who}', { who = facts.by }) or trouble.message)
    elseif trouble then
      say.refused(trouble)
    else
      say.tell(t('answered'))
    end
  end)
end

--- Every option once, then as a standing answer where it may be one.
---@param ask graphd.Ask
---@return {title: string, option: string, scope: string, kind: string}[]
function M.choices(ask)
  local covers = ask.rule or ''
  local titles = {
    once = '{answer}',
    attempt = t('{answer}, for this attempt ({covers})'),
    graph = t('{answer}, for the whole graph ({covers})'),
  }
  local made = {}
  for _, scope in ipairs(#ask.scopes > 0 and ask.scopes or { 'once' }) do
    for _, option in ipairs(ask.options) do
      local title = t(titles[scope] or '{answer}', { answer = option.label, covers = covers })
      table.insert(made, { title = title, option = option.id, scope = scope, kind = option.kind })
    end
  end
  return made
end

local function ask_text(session, ask)
  vim.ui.input({ prompt = M.words(ask) .. '\n' .. t('Answer: ') }, function(text)
    if text and text ~= '' then
      M.respond(session, { ask = ask.id, actionHash = ask.actionHash, text = text })
    end
  end)
end

--- Where the cursor stands at first: on what allows nothing.
local function harmless(choices)
  for number, one in ipairs(choices) do
    if vim.startswith(one.kind or '', 'reject') then
      return number
    end
  end
  return 1
end

--- Puts one question to the person. It leaves by itself when somebody else answers it.
---@param session graphd.nvim.Session
---@param ask graphd.Ask
---@param is_unasked? boolean
function M.put(session, ask, is_unasked)
  if #ask.options == 0 then
    return ask_text(session, ask)
  end
  local function title(one)
    return one.title
  end
  local choices = M.choices(ask)
  local options =
    { prompt = M.words(ask), format_item = title, first = harmless(choices), is_unasked = is_unasked }
  local close = choice.open(choices, options, function(chosen)
    shown = nil
    if chosen then
      local answer =
        { ask = ask.id, actionHash = ask.actionHash, option = chosen.option, scope = chosen.scope }
      M.respond(session, answer)
    end
  end)
  shown = is_open(session, ask.id) and { ask = ask.id, close = close, session = session } or nil
end

--- The open questions: the only one at once, else a choice among them.
---@param session graphd.nvim.Session
function M.open(session)
  local asks = session.mirror:asks()
  if #asks == 0 then
    return say.tell(t('nothing waits for an answer'))
  elseif #asks == 1 then
    return M.put(session, asks[1])
  end
  choice.open(asks, { prompt = t('Which question?'), format_item = M.words }, function(ask)
    if ask then
      M.put(session, ask)
    end
  end)
end

-- ---- what comes and goes ---------------------------------------------------------------------------------------------

--- A change of the plan that this editor proposed is on the screen already; others' are told a moment later.
local function proposed(session, ask, tell)
  vim.defer_fn(function()
    if is_open(session, ask.id) and not require('graphd.plan').is_shown(ask.id) then
      tell()
    end
  end, 2 * NOTICE_MS)
end

local function tell(session, ask)
  local wanted = require('graphd.config').get().asks
  vim.api.nvim_exec_autocmds(
    'User',
    { pattern = 'GraphdAsk', modeline = false, data = { root = session.root, ask = ask } }
  )
  if wanted == 'prompt' and not shown then
    M.put(session, ask, true)
  elseif wanted ~= 'off' then
    say.warn(('%s; %s'):format(M.words(ask), t('to answer: {command}', { command = ':Graphd asks' })))
  end
end

local function left(id, by)
  if shown and shown.ask == id then
    local close = shown.close
    shown = nil
    close()
    say.tell(by and t('already answered by {who}', { who = by }) or t('the question was withdrawn'))
  end
end

local function arrived(session, ask)
  local function now()
    tell(session, ask)
  end
  if ask.kind == 'proposal' then
    proposed(session, ask, now)
  else
    now()
  end
end

--- Keeps to what is open: the mirror says it, the notice says who answered.
---@param session graphd.nvim.Session
function M.watch(session)
  local known, answered_by = {}, {}
  local function compare()
    local now = {}
    for _, ask in ipairs(session.mirror:asks()) do
      now[ask.id] = true
      if not known[ask.id] then
        arrived(session, ask)
      end
    end
    for id in pairs(known) do
      if not now[id] then
        left(id, answered_by[id])
      end
    end
    known = now
  end
  session:listen(function(event, facts)
    if event == 'asks' then
      for _, closed in ipairs(facts.closed) do
        answered_by[closed.id] = closed.by
      end
    end
    if event == 'asks' then
      vim.schedule(compare)
    elseif event == 'changed' and (facts.asks or facts.cleared) then
      vim.defer_fn(compare, NOTICE_MS)
    end
  end)
end

return M
