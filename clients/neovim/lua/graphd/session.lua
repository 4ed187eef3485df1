--- A live view of one workspace's daemon: requests, the mirror of its graphs, and how it comes back when it is lost.
---
--- What carries the messages is given from outside (`open`): in the editor it is a language client, in tests a bare
--- connection. Nothing is lost with it: graphs stay as they were told, requests wait, and the subscription goes on by rev.
local Mirror = require('graphd.mirror')
local t = require('graphd.text').t

---@alias graphd.nvim.State
---| 'idle' # not asked for yet
---| 'starting'
---| 'live'
---| 'lost' # it comes back by itself
---| 'stopped' # somebody stopped the daemon
---| 'failed' # it does not come back by itself

---@class graphd.nvim.Link What carries messages.
---@field request fun(method: string, params: table, done: fun(trouble?: table, result?: any))
---@field close fun()

---@class graphd.nvim.Hooks What a link tells.
---@field ready fun(facts: graphd.HelloResult)
---@field notified fun(method: string, params: table)
---@field ended fun(reason: string)

---@class graphd.nvim.Call
---@field method string
---@field params table
---@field done fun(trouble?: table, result?: any)

---@class graphd.nvim.Session
---@field root string
---@field state graphd.nvim.State
---@field reason? string Why it is not live.
---@field retry_in_ms? integer
---@field facts? graphd.HelloResult
---@field mirror graphd.nvim.Mirror
---@field activity table<string, table<string, graphd.NodeActivity>> What running nodes do, by graph and slug.
local Session = {}
Session.__index = Session

local DELAYS_MS = { 1000, 2000, 5000 }
local LOSSES_LIMIT, LOSSES_MS = 5, 180000
local WAITING_LIMIT = 64

---@param root string
---@param open fun(session: graphd.nvim.Session, hooks: graphd.nvim.Hooks): graphd.nvim.Link?, string?
---@return graphd.nvim.Session
function Session.new(root, open)
  return setmetatable({
    root = root,
    state = 'idle',
    mirror = Mirror.new(),
    activity = {},
    _open = open,
    _listeners = {},
    _waiting = {},
    _in_flight = {},
    _losses = {},
    _followed = {},
  }, Session)
end

--- Calls `listener(event, facts)` for `state`, `changed`, `asks`, `activity` and `output` until the answer is called.
---@param listener fun(event: string, facts: any)
---@return fun()
function Session:listen(listener)
  table.insert(self._listeners, listener)
  return function()
    self._listeners = vim.tbl_filter(function(one)
      return one ~= listener
    end, self._listeners)
  end
end

function Session:_tell(event, facts)
  for _, listener in ipairs(self._listeners) do
    listener(event, facts)
  end
end

function Session:_become(state, reason)
  self.state, self.reason = state, reason
  self:_tell('state', state)
end

-- ---- the link --------------------------------------------------------------------------------------------------------

--- Connects, where that is not under way; begins anew where it was given up.
function Session:start()
  if self.state == 'live' or self.state == 'starting' then
    return
  end
  self._losses = {}
  self:_connect()
end

--- Ends the connection, never the daemon. `start` makes another one, on which is asked again what was not answered.
function Session:close()
  local link = self._link
  self._link, self._attempt, self._subscription = nil, nil, nil
  self:_keep_in_flight()
  if link then
    link.close()
  end
  self:_become('idle')
end

function Session:_connect()
  local attempt = {}
  self._attempt, self._farewell, self.retry_in_ms = attempt, nil, nil
  local function mine(act)
    return function(...)
      if self._attempt == attempt then
        act(self, ...)
      end
    end
  end
  self:_become('starting', self.reason)
  local link, problem = self._open(self, {
    ready = mine(self._ready),
    notified = mine(self._notified),
    ended = mine(self._ended),
  })
  if not link then
    self:_give_up(problem or '')
  elseif self._attempt == attempt then
    self._link = link
  end
end

function Session:_ready(facts)
  self.facts = facts
  self:_become('live')
  self:_subscribe()
  local waiting = self._waiting
  self._waiting = {}
  for _, call in ipairs(waiting) do
    self:_send(call)
  end
end

function Session:_ended(reason)
  self._subscription = nil
  self._link, self._attempt = nil, nil
  self:_keep_in_flight()
  local farewell = self._farewell
  if farewell and not farewell.reconnect then
    self:_refuse_waiting(farewell.reason)
    return self:_become('stopped', farewell.reason)
  end
  local now = vim.uv.now()
  self._losses = vim.tbl_filter(function(at)
    return now - at < LOSSES_MS
  end, self._losses)
  table.insert(self._losses, now)
  if #self._losses >= LOSSES_LIMIT then
    return self:_give_up(reason)
  end
  self.retry_in_ms = DELAYS_MS[math.min(#self._losses, #DELAYS_MS)]
  self:_become('lost', farewell and farewell.reason or reason)
  vim.defer_fn(function()
    if self.state == 'lost' then
      self:_connect()
    end
  end, self.retry_in_ms)
end

function Session:_give_up(reason)
  self._link, self._attempt, self.retry_in_ms = nil, nil, nil
  self:_refuse_waiting(reason)
  self:_become('failed', reason)
end

-- ---- requests --------------------------------------------------------------------------------------------------------

--- Asks the daemon. Waits while the connection is being made, and is asked again where it was lost meanwhile; so what
--- changes something goes through `change`.
---@param method string
---@param params? table
---@param done fun(trouble?: {message: string, data?: graphd.ErrorFacts}, result?: any)
function Session:call(method, params, done)
  local call = { method = method, params = params or vim.empty_dict(), done = done }
  if self.state == 'live' then
    return self:_send(call)
  end
  if self.state == 'idle' then
    self:start()
  end
  if self.state == 'live' then
    self:_send(call)
  elseif self.state == 'failed' or self.state == 'stopped' then
    done({
      message = self.reason or '',
      data = { hint = t('to connect again: {command}', { command = ':Graphd restart' }) },
    })
  elseif #self._waiting >= WAITING_LIMIT then
    done({ message = t('too much waits for the daemon') })
  else
    table.insert(self._waiting, call)
  end
end

--- The same for what changes a graph: applied once, whatever happens to the connection.
---@param method string
---@param params table
---@param done fun(trouble?: {message: string, data?: graphd.ErrorFacts}, result?: any)
function Session:change(method, params, done)
  self:call(method, vim.tbl_extend('force', params, { requestId = Session.number_used_once() }), done)
end

---@return string
function Session.number_used_once()
  local bytes = vim.uv.random(16)
  return (bytes:gsub('.', function(byte)
    return ('%02x'):format(byte:byte())
  end))
end

function Session:_send(call)
  table.insert(self._in_flight, call)
  local link = self._link
  link.request(call.method, call.params, function(trouble, result)
    local is_ours = self._link == link and vim.list_contains(self._in_flight, call)
    if is_ours then
      self._in_flight = vim.tbl_filter(function(one)
        return one ~= call
      end, self._in_flight)
      call.done(trouble, result)
    end
  end)
end

--- What was sent and not answered waits again, in its order. Subscriptions are made anew.
function Session:_keep_in_flight()
  for _, call in ipairs(self._in_flight) do
    if call.method ~= 'workgraph/subscribe' and call.method ~= 'workgraph/unsubscribe' then
      table.insert(self._waiting, call)
    end
  end
  self._in_flight = {}
end

function Session:_refuse_waiting(reason)
  local waiting = self._waiting
  self._waiting = {}
  for _, call in ipairs(waiting) do
    call.done({ message = reason })
  end
end

-- ---- what is told ----------------------------------------------------------------------------------------------------

--- One subscription: all graphs, what their nodes do, and what the followed ones print. Another one takes its place.
function Session:_subscribe(is_anew)
  local earlier = self._subscription
  self._subscription = nil
  local params = { activity = true, output = vim.tbl_values(self._followed) }
  if self._store and not is_anew then
    params.store, params.since = self._store, self.mirror:revs()
  end
  self:call('workgraph/subscribe', params, function(trouble, result)
    if trouble then
      return require('graphd.say').refused(trouble)
    end
    self._store, self._subscription = result.store, result.subscription
    for _, changed in ipairs(result.graphs) do
      self:_fold(changed)
    end
    if earlier and self.state == 'live' then
      self:call('workgraph/unsubscribe', { subscription = earlier }, function() end)
    end
  end)
end

--- Has `output` told of a node until the answer is called.
---@param graph string
---@param node string
---@return fun()
function Session:follow(graph, node)
  local mark = {}
  self._followed[mark] = { graph = graph, node = node }
  if self.state == 'live' then
    self:_subscribe()
  end
  return function()
    self._followed[mark] = nil
  end
end

function Session:_fold(changed)
  if not self.mirror:apply(changed) then
    if not self._is_mending then
      self._is_mending = true
      vim.schedule(function()
        self._is_mending = false
        if self.state == 'live' then
          self:_subscribe(true)
        end
      end)
    end
    return
  end
  local running = self.activity[changed.graph]
  for _, node in ipairs(running and changed.nodes or {}) do
    if node.state ~= 'running' then
      running[node.slug] = nil
    end
  end
  self:_tell('changed', changed)
end

local NOTICES = {
  ['workgraph/changed'] = function(self, params)
    self:_fold(params)
  end,
  ['workgraph/activity'] = function(self, params)
    local nodes = self.activity[params.graph] or {}
    self.activity[params.graph] = nodes
    for _, node in ipairs(params.nodes) do
      nodes[node.node] = node
    end
    self:_tell('activity', params)
  end,
  ['workgraph/asks'] = function(self, params)
    self:_tell('asks', params)
  end,
  ['workgraph/output'] = function(self, params)
    self:_tell('output', params)
  end,
  ['graphd/stopping'] = function(self, params)
    self._farewell = params
  end,
}

function Session:_notified(method, params)
  if NOTICES[method] then
    NOTICES[method](self, params)
  end
end

--- The notifications that a link has to pass on.
Session.NOTICES = vim.tbl_keys(NOTICES)

return Session
