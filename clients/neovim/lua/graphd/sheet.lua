--- Buffers of ours: made once, drawn whole, coloured by marks. Nobody types into them.
local M = {}

local marks = vim.api.nvim_create_namespace('graphd')

---@class graphd.nvim.Span A coloured part of a line: columns in bytes, the end left out.
---@field line integer From 0.
---@field from integer
---@field to integer
---@field group string

--- A scratch buffer. `facts` tell `:Graphd` what is meant when it is called in there.
---@param filetype string
---@param facts {root: string, graph?: string, node?: string, attempt?: integer}
---@return integer
function M.new(filetype, facts)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.b[buffer].graphd = facts
  vim.bo[buffer].bufhidden = 'hide'
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].filetype = filetype
  require('graphd.looks').link()
  return buffer
end

---@param buffer integer
---@param lines string[]
---@param spans? graphd.nvim.Span[]
function M.draw(buffer, lines, spans)
  if not vim.api.nvim_buf_is_valid(buffer) then
    return
  end
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_clear_namespace(buffer, marks, 0, -1)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable = false
  for _, span in ipairs(spans or {}) do
    vim.api.nvim_buf_set_extmark(buffer, marks, span.line, span.from, {
      end_col = span.to,
      hl_group = span.group,
      strict = false,
    })
  end
end

--- Dim text behind the end of a line.
---@param buffer integer
---@param line integer From 0.
---@param text string
---@param group string
function M.note(buffer, line, text, group)
  vim.api.nvim_buf_set_extmark(buffer, marks, line, 0, {
    virt_text = { { text, group } },
    virt_text_pos = 'eol',
    hl_mode = 'combine',
  })
end

---@param buffer integer
---@param keys table<string, function>
function M.keys(buffer, keys)
  for key, act in pairs(keys) do
    vim.keymap.set('n', key, act, { buffer = buffer, nowait = true, silent = true })
  end
end

--- In the middle of the screen, as big as it allows.
local function place_of(width, height)
  local columns, rows = vim.o.columns, vim.o.lines - vim.o.cmdheight - 1
  width = math.max(20, math.min(width, columns - 4))
  height = math.max(1, math.min(height, rows - 3))
  local row = math.max(0, math.floor((rows - height - 2) / 2))
  local col = math.max(0, math.floor((columns - width - 2) / 2))
  return { relative = 'editor', width = width, height = height, row = row, col = col }
end

--- A window over the others that shows a buffer: as large as its text, within the screen.
---@param buffer integer
---@param options {title: string, footer?: string, width?: integer, height?: integer, enter?: boolean}
---@return integer
function M.float(buffer, options)
  local rows = vim.o.lines - vim.o.cmdheight - 1
  local width = options.width or math.floor(vim.o.columns * 0.8)
  local place = place_of(width, options.height or math.floor(rows * 0.7))
  place.style, place.border, place.title = 'minimal', 'rounded', (' %s '):format(options.title)
  place.footer = options.footer and (' %s '):format(options.footer) or nil
  place.footer_pos = options.footer and 'right' or nil
  local window = vim.api.nvim_open_win(buffer, options.enter ~= false, place)
  vim.wo[window].winhighlight = 'FloatTitle:GraphdTitle,FloatFooter:GraphdDescription'
  return window
end

--- The small windows that show a buffer grow where its text needs more room than they have.
---@param buffer integer
---@param width integer
---@param height integer
function M.grow(buffer, width, height)
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    local had = vim.api.nvim_win_get_config(window)
    if had.relative ~= '' then
      vim.api.nvim_win_set_config(window, place_of(math.max(width, had.width), math.max(height, had.height)))
    end
  end
end

--- The widest line, in cells.
---@param lines string[]
---@return integer
function M.width(lines)
  local width = 1
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  return width
end

--- Closes a window, where it is still there and not the last one.
---@param window integer?
function M.close(window)
  if window and vim.api.nvim_win_is_valid(window) then
    pcall(vim.api.nvim_win_close, window, true)
  end
end

return M
