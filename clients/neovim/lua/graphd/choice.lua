--- A choice for the person, through `vim.ui.select`.
---
--- The one that Neovim brings stops the editor until it is answered and cannot be taken back, which a question that
--- somebody else answers has to be; where nothing has taken its place, a small window of ours does.
local sheet = require('graphd.sheet')
local t = require('graphd.text').t

local M = {}

local GUARD_MS = 700 -- who is typing when an unasked question opens has not answered it

local function is_builtin()
  return debug.getinfo(vim.ui.select, 'S').source:match('vim/ui%.lua$') ~= nil
end

--- What is asked in full, where it is too long for a title: nobody answers what they cannot read.
local function question(prompt, width)
  local lines = {}
  for _, line in ipairs(vim.split(prompt, '\n')) do
    for from = 0, math.max(0, vim.fn.strchars(line) - 1), width do
      table.insert(lines, ' ' .. vim.fn.strcharpart(line, from, width))
    end
  end
  table.insert(lines, '')
  return lines
end

--- The lines of a menu, and how many of them are the question.
local function lines_of(items, options)
  local format = options.format_item or tostring
  local width = math.floor(vim.o.columns * 0.6)
  local is_short = vim.fn.strdisplaywidth(options.prompt) <= width and not options.prompt:find('\n', 1, true)
  local lines, spans = is_short and {} or question(options.prompt, width), {}
  local asked = #lines
  for number, item in ipairs(items) do
    local key = number <= 9 and tostring(number) or ' '
    table.insert(lines, (' %s  %s '):format(key, format(item):gsub('\n', ' ')))
    table.insert(spans, { line = #lines - 1, from = 1, to = 2, group = 'GraphdKey' })
  end
  return lines, spans, asked
end

local function open_window(lines, spans, asked, options)
  local buffer = sheet.new('graphd-choice', { root = require('graphd.workspace').root_of() })
  sheet.draw(buffer, lines, spans)
  local title = asked == 0 and options.prompt or t('A question')
  local width = math.max(sheet.width(lines), vim.fn.strdisplaywidth(title) + 2)
  local window = sheet.float(buffer, { title = title, width = width, height = #lines })
  vim.wo[window].cursorline = true
  vim.api.nvim_win_set_cursor(window, { asked + (options.first or 1), 0 })
  return buffer, window
end

--- `pick(number)` chooses, `leave()` does not.
local function bind(buffer, window, asked, count, pick, leave)
  local keys = { ['<Esc>'] = leave, q = leave }
  keys['<CR>'] = function()
    pick(vim.api.nvim_win_get_cursor(window)[1] - asked)
  end
  for number = 1, math.min(9, count) do
    keys[tostring(number)] = function()
      pick(number)
    end
  end
  sheet.keys(buffer, keys)
  vim.api.nvim_create_autocmd('WinClosed', { pattern = tostring(window), once = true, callback = leave })
end

local function menu(items, options, done)
  local lines, spans, asked = lines_of(items, options)
  if options.is_unasked then
    vim.cmd.stopinsert()
  end
  local buffer, window = open_window(lines, spans, asked, options)
  local opened_at, guard_ms = vim.uv.now(), options.is_unasked and GUARD_MS or 0
  local is_over = false
  local function close()
    local was_open = not is_over
    is_over = true
    sheet.close(window)
    pcall(vim.api.nvim_buf_delete, buffer, { force = true })
    return was_open
  end
  local function leave()
    if not is_over and close() then
      done()
    end
  end
  local function pick(number)
    if items[number] ~= nil and vim.uv.now() - opened_at >= guard_ms and close() then
      done(items[number], number)
    end
  end
  bind(buffer, window, asked, #items, pick, leave)
  return close
end

--- Windows that a `vim.ui.select` of somebody else opened: how to take it back.
local function foreign(items, options, done)
  local before = vim.api.nvim_list_wins()
  local is_over = false
  vim.ui.select(items, options, function(item, number)
    if not is_over then
      is_over = true
      done(item, number)
    end
  end)
  local opened = vim.tbl_filter(function(window)
    return not vim.list_contains(before, window)
  end, vim.api.nvim_list_wins())
  return function()
    is_over = true
    vim.tbl_map(sheet.close, opened)
  end
end

--- Offers `items`; `done` gets the chosen one and its number, or nil. Answers how to take the question back, after which
--- `done` is not called any more.
---@param items any[]
---@param options {prompt: string, format_item?: fun(item: any): string, first?: integer, is_unasked?: boolean} `first`:
--- where the cursor stands; `is_unasked`: the person did not call for it.
---@param done fun(item?: any, number?: integer)
---@return fun()
function M.open(items, options, done)
  options = vim.tbl_extend('keep', options, { kind = 'graphd' })
  return is_builtin() and menu(items, options, done) or foreign(items, options, done)
end

return M
