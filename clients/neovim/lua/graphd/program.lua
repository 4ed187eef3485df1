--- Where the program is: the user's option, the workspace's virtual environment, PATH. Nothing is ever downloaded.
local t = require('graphd.text').t

local M = {}

M.INSTALL = 'pipx install workgraphd'
M.VERSIONS = '>=0.1.0 <1.0.0'
M.PROTOCOL = { lowest = 1, highest = 1 }
M.CLIENT = { name = 'graphd.nvim', version = '0.1.0' }

---@class graphd.nvim.Program
---@field path? string
---@field source? 'option'|'workspace'|'PATH'
---@field problem? string Why there is none.

local function named(wanted)
  local name = vim.fn.expand(wanted)
  if name:find('/', 1, true) and not vim.startswith(name, '/') then
    return { problem = t('program must be an absolute path or a name on PATH, not {name}', { name = wanted }) }
  end
  local path = vim.fn.exepath(name)
  if path == '' then
    return { problem = t('program names {name}, which is not there or cannot be run', { name = wanted }) }
  end
  return { path = path, source = 'option' }
end

---@param root string
---@return graphd.nvim.Program
function M.find(root)
  local wanted = require('graphd.config').get().program
  if wanted then
    return named(wanted)
  end
  local own = vim.fs.joinpath(root, '.venv', 'bin', 'graphd')
  if vim.fn.executable(own) == 1 then
    return { path = own, source = 'workspace' }
  end
  local path = vim.fn.exepath('graphd')
  if path ~= '' then
    return { path = path, source = 'PATH' }
  end
  return { problem = t('graphd is not installed; to install it: {command}', { command = M.INSTALL }) }
end

return M
