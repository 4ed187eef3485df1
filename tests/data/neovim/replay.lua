-- A session over a bare connection, for the golden conversations: what it sends and hears is told to the test.
local Session = require('graphd.session')

local M = { results = {}, heard = {} }

local function keep(trouble, result)
  table.insert(M.results, { error = trouble, result = result })
end

local function open(_, hooks)
  M.hooks = hooks
  M.rpc = vim.lsp.rpc.connect(M.address)({
    notification = function(method, params)
      table.insert(M.heard, { method = method, params = params })
      hooks.notified(method, params)
    end,
    on_exit = function()
      hooks.ended('closed')
    end,
    on_error = function() end,
    server_request = function() end,
  })
  return { request = M.rpc.request, close = M.rpc.terminate }
end

function M.start(address)
  M.address = address
  M.session = Session.new('/somewhere', open)
  M.session:start()
end

--- Before the greeting, and the greeting itself, the session has nothing to say.
local function say_bare(method, params)
  M.rpc.request(method, params, function(trouble, result)
    if method == 'graphd/hello' and result and M.session.state ~= 'live' then
      M.hooks.ready(result)
    end
    keep(trouble, result)
  end)
end

function M.call(method, params)
  if method == 'graphd/hello' or M.session.state ~= 'live' then
    return say_bare(method, params)
  end
  M.session:call(method, params, function(trouble, result)
    if method == 'workgraph/subscribe' and result then
      for _, changed in ipairs(result.graphs) do
        M.session:_fold(changed)
      end
    end
    keep(trouble, result)
  end)
end

function M.revs()
  return M.session.mirror:revs()
end

return M
