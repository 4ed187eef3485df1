--- How states look: a sign and a highlight group for each. The signs are those of `graphd status`.
local M = {}

local SIGNS = {
  ['sync'] = '●',
  ['sync~spin'] = '●',
  ['debug-pause'] = '‖',
  ['debug-stop'] = '◼',
  ['debug-step-over'] = '–',
  ['warning'] = '!',
  ['pass'] = '✓',
  ['circle-outline'] = '○',
  ['circle-filled'] = '•',
  ['circle-slash'] = '✕',
  ['clock'] = '◌',
  ['error'] = '✗',
  ['lock'] = '■',
  ['ellipsis'] = '…',
}

local GROUPS = {
  active = 'Running',
  running = 'Running',
  live = 'Running',
  starting = 'Running',
  adopting = 'Running',
  verifying = 'Running',
  complete = 'Achieved',
  achieved = 'Achieved',
  failed = 'Failed',
  blocked = 'Blocked',
  stuck = 'Paused',
  user_paused = 'Paused',
  infra_paused = 'Paused',
  budget_limited = 'Paused',
  stopping = 'Paused',
  ready = 'Ready',
  waiting = 'Waiting',
  settled = 'Waiting',
  skipped = 'Quiet',
  cancelled = 'Quiet',
  awaiting_permission = 'Ask',
  awaiting_input = 'Ask',
}

local LINKS = {
  GraphdRunning = 'DiagnosticInfo',
  GraphdAchieved = 'DiagnosticOk',
  GraphdFailed = 'DiagnosticError',
  GraphdBlocked = 'DiagnosticWarn',
  GraphdPaused = 'DiagnosticWarn',
  GraphdAsk = 'DiagnosticWarn',
  GraphdReady = 'DiagnosticHint',
  GraphdWaiting = 'Comment',
  GraphdQuiet = 'NonText',
  GraphdTitle = 'Title',
  GraphdDescription = 'Comment',
  GraphdActivity = 'Comment',
  GraphdKey = 'Special',
  GraphdAdded = 'Added',
  GraphdRemoved = 'Removed',
  GraphdChanged = 'Changed',
}

--- Links the groups where the colour scheme says nothing of them.
function M.link()
  for group, target in pairs(LINKS) do
    vim.api.nvim_set_hl(0, group, { link = target, default = true })
  end
end

---@param state string
---@return string
function M.group(state)
  return 'Graphd' .. (GROUPS[state:gsub(' ', '_')] or 'Waiting')
end

---@param icon string A codicon's name.
---@param state string
---@param own table<string, string> The option `icons`.
---@return string
function M.sign(icon, state, own)
  return own[state] or own[icon] or SIGNS[icon] or '•'
end

M.LINKS = LINKS

return M
