--- The link of a session in the editor: a language client that runs `graphd connect`, which starts the daemon if need be.
local program = require('graphd.program')
local t = require('graphd.text').t

local M = {}

M.NAME = 'graphd'
local START_LIMIT_MS = 30000

local function words_of_end(code, signal)
  if signal ~= 0 then
    return t('graphd connect was killed by signal {signal}', { signal = signal })
  end
  return t('graphd connect ended with {code}; see {command}', { code = code, command = ':Graphd log' })
end

--- `graphd connect` as a process. Neovim would warn at each of its ends; ours is a matter of the session, which says so
--- where it is shown, and comes back.
local function quiet_process(path, root, hooks)
  return function(dispatchers)
    local quiet = vim.tbl_extend('force', dispatchers, {
      on_exit = function(code, signal)
        dispatchers.on_exit(0, 0)
        vim.schedule(function()
          hooks.ended(words_of_end(code, signal))
        end)
      end,
    })
    return vim.lsp.rpc.start({ path, 'connect' }, quiet, { cwd = root })
  end
end

local function handlers(hooks)
  local made = {}
  for _, method in ipairs(require('graphd.session').NOTICES) do
    made[method] = function(_, params)
      hooks.notified(method, params)
    end
  end
  made['workspace/codeLens/refresh'] = function(_, _, context)
    require('graphd.attach').refresh_lenses(context.client_id)
    return vim.NIL
  end
  made['workspace/inlayHint/refresh'] = function(_, _, context)
    require('graphd.states').refresh(context.client_id)
    return vim.NIL
  end
  return made
end

local function commands(session)
  local made = {}
  for _, name in ipairs(require('graphd.verbs').COMMANDS) do
    made[name] = function(command)
      require('graphd.verbs').execute(session, name, (command.arguments or {})[1] or {})
    end
  end
  return made
end

--- What the user said of this client with `vim.lsp.config('graphd', …)`, the program apart.
local function of_user()
  local is_fine, config = pcall(function()
    return vim.lsp.config[M.NAME] or vim.lsp.config['*']
  end)
  return is_fine and config or {}
end

local function configured(session, path, hooks)
  local ours = {
    name = M.NAME,
    cmd = quiet_process(path, session.root, hooks),
    root_dir = session.root,
    handlers = handlers(hooks),
    commands = commands(session),
    get_language_id = function()
      return 'yaml'
    end,
    before_init = function(params)
      params.clientInfo = program.CLIENT
      params.locale = require('graphd.text').locale()
    end,
  }
  local config = vim.tbl_deep_extend('force', of_user(), ours)
  local offered = config.capabilities or vim.lsp.protocol.make_client_capabilities()
  config.capabilities =
    vim.tbl_deep_extend('force', offered, { workspace = { codeLens = { refreshSupport = true } } })
  return config
end

local function watch(config, hooks)
  local is_ready, client = false, nil
  local theirs = config.on_init
  config.on_init = vim.list_extend(type(theirs) == 'table' and theirs or { theirs }, {
    function(_, result)
      is_ready = true
      hooks.ready(vim.tbl_get(result, 'capabilities', 'experimental', 'workgraph') or {})
    end,
  })
  config.on_error = function()
    if not is_ready and client then
      client.rpc.terminate()
    end
  end
  vim.defer_fn(function()
    if not is_ready and client and not client:is_stopped() then
      client.rpc.terminate()
    end
  end, START_LIMIT_MS)
  return function(made)
    client = made
  end
end

---@param session graphd.nvim.Session
---@param hooks graphd.nvim.Hooks
---@return graphd.nvim.Link?, string?
function M.open(session, hooks)
  local found = program.find(session.root)
  if not found.path then
    return nil, found.problem
  end
  local config = configured(session, found.path, hooks)
  local made = watch(config, hooks)
  local options = {
    attach = false,
    silent = true,
    reuse_client = function()
      return false
    end,
  }
  local id = vim.lsp.start(config, options)
  local client = id and vim.lsp.get_client_by_id(id)
  if not client then
    return nil, t('{program} could not be started', { program = found.path })
  end
  made(client)
  session.client_id = id
  return {
    request = function(method, params, done)
      client:request(method, params, done)
    end,
    close = function()
      client:stop()
    end,
  }
end

return M
