--- Workflow files and their language server: attached when they are opened, and again after the daemon was lost.
local workspace = require('graphd.workspace')

local M = {}

---@type table<string, table<integer, boolean>> Buffers by workspace.
local buffers = {}
local group = vim.api.nvim_create_augroup('graphd.attach', {})

local function client_of(buffer)
  return vim.lsp.get_clients({ bufnr = buffer, name = require('graphd.link').NAME })[1]
end

--- Lenses and states of a buffer, read anew.
local function refresh(buffer)
  local client = client_of(buffer)
  if client and client.initialized then
    if require('graphd.config').get().lenses then
      vim.lsp.codelens.refresh({ bufnr = buffer })
    end
    require('graphd.states').refresh_buffer(client, buffer)
  end
end

--- The daemon says that lenses are old.
---@param client_id integer
function M.refresh_lenses(client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  for buffer in pairs(client and client.attached_buffers or {}) do
    if require('graphd.config').get().lenses and vim.api.nvim_buf_is_loaded(buffer) then
      vim.lsp.codelens.refresh({ bufnr = buffer })
    end
  end
end

local function attach_all(session)
  for buffer in pairs(buffers[session.root]) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      vim.lsp.buf_attach_client(buffer, session.client_id)
      refresh(buffer)
    else
      buffers[session.root][buffer] = nil
    end
  end
end

local function watch(session)
  buffers[session.root] = {}
  session:listen(function(event, state)
    if event == 'state' and state == 'live' then
      vim.schedule(function()
        attach_all(session)
      end)
    end
  end)
end

--- Gives a buffer the language server of its workspace.
---@param buffer integer
function M.buffer(buffer)
  if not require('graphd.config').get().attach or vim.bo[buffer].buftype ~= '' then
    return
  end
  require('graphd.looks').link()
  local session = workspace.session(workspace.root_of(buffer))
  if not buffers[session.root] then
    watch(session)
  end
  buffers[session.root][buffer] = true
  vim.api.nvim_clear_autocmds({ group = group, buffer = buffer })
  vim.api.nvim_create_autocmd({ 'BufEnter', 'InsertLeave', 'BufWritePost' }, {
    group = group,
    buffer = buffer,
    callback = function()
      refresh(buffer)
    end,
  })
  if session.state == 'live' then
    attach_all(session)
  else
    session:start()
  end
end

return M
