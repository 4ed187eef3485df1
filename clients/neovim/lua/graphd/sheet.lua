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

--- A window over the others that shows a buffer: as large as its text, within the screen.
---@param buffer integer
---@param options {title: string, footer?: string, width?: integer, height?: integer, enter?: boolean}
---@return integer
function M.float(buffer, options)
  local columns, rows = vim.o.columns, vim.o.lines - vim.o.cmdheight - 1
  local width = math.max(20, math.min(options.width or math.floor(columns * 0.8), columns - 4))
  local height = math.max(1, math.min(options.height or math.floor(rows * 0.7), rows - 3))
  local window = vim.api.nvim_open_win(buffer, options.enter ~= false, {
    relative = 'editor',
    style = 'minimal',
    border = 'rounded',
    title = (' %s '):format(options.title),
    footer = options.footer and (' %s '):format(options.footer) or nil,
    footer_pos = options.footer and 'right' or nil,
    width = width,
    height = height,
    row = math.max(0, math.floor((rows - height - 2) / 2)),
    col = math.max(0, math.floor((columns - width - 2) / 2)),
  })
  vim.wo[window].winhighlight = 'FloatTitle:GraphdTitle,FloatFooter:GraphdDescription'
  return window
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
