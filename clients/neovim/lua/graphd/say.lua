--- Messages to the person: short, with what to do next.
local t = require('graphd.text').t

local M = {}

local function notify(message, level)
  vim.notify(message:gsub('%s*\n%s*', ': '), level, { title = 'graphd' })
end

---@param message string
function M.tell(message)
  notify(message, vim.log.levels.INFO)
end

---@param message string
function M.warn(message)
  notify(message, vim.log.levels.WARN)
end

--- An error of the daemon's: what it says, and its hint. On one line: two would stop the editor at a prompt.
---@param trouble {message: string, data?: graphd.ErrorFacts}
function M.refused(trouble)
  local hint = type(trouble.data) == 'table' and trouble.data.hint or ''
  notify(hint ~= '' and ('%s: %s'):format(trouble.message, hint) or trouble.message, vim.log.levels.ERROR)
end

--- Yes or no; `done` is called for yes alone.
---@param question string
---@param yes string What yes does, as a button says it.
---@param done fun()
function M.confirm(question, yes, done)
  require('graphd.choice').open({ yes, t('No') }, { prompt = question }, function(chosen)
    if chosen == yes then
      done()
    end
  end)
end

return M
