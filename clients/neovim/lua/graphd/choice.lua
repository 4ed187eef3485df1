--- A choice for the person, through `vim.ui.select`.
---
--- The one that Neovim brings stops the editor until it is answered and cannot be taken back, which a question that
--- somebody else answers has to be; where nothing has taken its place, a small window of ours does.
local sheet = require('graphd.sheet')

local M = {}

local GUARD_MS = 700 -- who is typing when an unasked question opens has not answered it

local function is_builtin()
  return debug.getinfo(vim.ui.select, 'S').source:match('vim/ui%.lua$') ~= nil
end

local function lines_of(items, format)
  local lines, spans = {}, {}
  for number, item in ipairs(items) do
    local key = number <= 9 and tostring(number) or ' '
    lines[number] = (' %s  %s '):format(key, format(item):gsub('\n', ' '))
    spans[number] = { line = number - 1, from = 1, to = 2, group = 'GraphdKey' }
  end
  return lines, spans
end

local function menu(items, options, done)
  local format = options.format_item or tostring
  local lines, spans = lines_of(items, format)
  local head = vim.split(options.prompt or '', '\n')
  local buffer = sheet.new('graphd-choice', { root = require('graphd.workspace').root_of() })
  sheet.draw(buffer, lines, spans)
  local title = table.remove(head, 1)
  local width = math.max(sheet.width(lines), vim.fn.strdisplaywidth(title) + 2)
  local window = sheet.float(buffer, { title = title, width = width, height = #lines })
  vim.wo[window].cursorline = true
  vim.api.nvim_win_set_cursor(window, { options.first or 1, 0 })
  local opened_at, guard_ms = vim.uv.now(), options.is_unasked and GUARD_MS or 0
  if options.is_unasked then
    vim.cmd.stopinsert()
  end
  local is_over = false
  local function finish(item, number)
    if not is_over then
      is_over = true
      sheet.close(window)
      pcall(vim.api.nvim_buf_delete, buffer, { force = true })
      if item ~= nil or number ~= false then
        done(item, number)
      end
    end
  end
  local function pick(number)
    if vim.uv.now() - opened_at >= guard_ms then
      finish(items[number], number)
    end
  end
  local keys = {
    ['<CR>'] = function()
      pick(vim.api.nvim_win_get_cursor(window)[1])
    end,
    ['<Esc>'] = function()
      finish()
    end,
  }
  keys.q = keys['<Esc>']
  for number = 1, math.min(9, #items) do
    keys[tostring(number)] = function()
      pick(number)
    end
  end
  sheet.keys(buffer, keys)
  vim.api.nvim_create_autocmd('WinClosed', {
    pattern = tostring(window),
    once = true,
    callback = function()
      finish()
    end,
  })
  return function()
    finish(nil, false)
  end
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
