--- Messages of the client in the person's language. The English text is the key; the daemon's texts come translated.
local M = {}

local function option()
  local options = vim.g.graphd
  if type(options) == 'function' then
    local is_fine, made = pcall(options)
    options = is_fine and made
  end
  return type(options) == 'table' and options.locale or nil
end

--- The language that messages are in, as the daemon takes it too: the option, else what Neovim runs in.
---@return string
function M.locale()
  local own = option()
  if type(own) == 'string' then
    return own
  end
  local lang = vim.v.lang:match('^[^.]*')
  if lang ~= 'C' and lang ~= 'POSIX' and lang ~= '' then
    return vim.v.lang
  end
  return vim.env.LC_ALL or vim.env.LC_MESSAGES or vim.env.LANG or 'en'
end

--- A text with its values in place of `{name}`.
---@param text string
---@param values? table<string, any>
---@return string
function M.t(text, values)
  local said = text
  if vim.startswith(M.locale(), 'zh') then
    said = require('graphd.chinese')[text] or text
  end
  if not values then
    return said
  end
  return (
    said:gsub('{(%w+)}', function(name)
      return values[name] ~= nil and tostring(values[name]) or nil
    end)
  )
end

return M
