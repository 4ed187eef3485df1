--- Which workspace something belongs to, and the session of each.
---
--- The rule is the daemon's: the nearest folder with `.agents`, else the root of the git work tree, else the folder itself.
local M = {}

---@type table<string, graphd.nvim.Session>
local sessions = {}

---@param path string A file or a folder.
---@return string
function M.root(path)
  local start = vim.fs.normalize(path)
  local home = vim.fs.normalize('~')
  local marked = vim.fs.find('.agents', {
    path = start,
    upward = true,
    type = 'directory',
    limit = math.huge,
  })
  for _, found in ipairs(marked) do
    if vim.fs.dirname(found) ~= home then
      return vim.uv.fs_realpath(vim.fs.dirname(found)) or vim.fs.dirname(found)
    end
  end
  local root = vim.fs.root(start, '.git')
  local folder = root or (vim.fn.isdirectory(start) == 1 and start or vim.fs.dirname(start))
  return vim.uv.fs_realpath(folder) or folder
end

--- The workspace of a buffer: our own ones know it, files by where they are, anything else by the current folder.
---@param buffer? integer
---@return string
function M.root_of(buffer)
  buffer = buffer or vim.api.nvim_get_current_buf()
  local own = vim.b[buffer].graphd
  if own then
    return own.root
  end
  local name = vim.api.nvim_buf_get_name(buffer)
  local is_file = vim.bo[buffer].buftype == '' and name ~= ''
  return M.root(is_file and name or vim.fn.getcwd())
end

--- The session of a workspace, made when it is first asked for.
---@param root string
---@return graphd.nvim.Session
function M.session(root)
  if not sessions[root] then
    sessions[root] = require('graphd.session').new(root, require('graphd.link').open)
    require('graphd.asks').watch(sessions[root])
    require('graphd.events').watch(sessions[root])
  end
  return sessions[root]
end

--- The session of the current buffer's workspace, under way.
---@return graphd.nvim.Session
function M.current()
  local session = M.session(M.root_of())
  if session.state == 'idle' then
    session:start()
  end
  return session
end

--- Only a session that is there.
---@param root string
---@return graphd.nvim.Session?
function M.known(root)
  return sessions[root]
end

--- The session, if there is one, that a buffer belongs to; without a look at the disk.
---@param buffer? integer
---@return graphd.nvim.Session?
function M.known_here(buffer)
  buffer = buffer or vim.api.nvim_get_current_buf()
  local own = vim.b[buffer].graphd
  local name = own and own.root or vim.api.nvim_buf_get_name(buffer)
  local path = name ~= '' and name or vim.fn.getcwd()
  local nearest
  for root, session in pairs(sessions) do
    if vim.startswith(path .. '/', root .. '/') and (not nearest or #root > #nearest.root) then
      nearest = session
    end
  end
  return nearest
end

return M
