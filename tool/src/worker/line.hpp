// Lines of styled text, fitted to a width.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

enum class Style : std::uint8_t { plain, bold, dim, good, warning, bad };

struct Span {
  std::string text;
  Style style = Style::plain;
};

using Line = std::vector<Span>;
using Block = std::vector<Line>;

/// Cut off or padded to exactly `width` columns.
Line fitted(const Line& line, std::size_t width);
/// The text, followed by a rule to the end of the line.
Line title(std::string_view text, std::size_t width);
/// Breaks between words, and inside words that are wider than a line. All lines but the first begin
/// with `indent` blanks. The text must have no control characters.
Block wrapped(std::string_view text, Style style, std::size_t indent, std::size_t width);

void append(Block& block, Block more);
void append(Line& line, Line more);

/// Right-aligned, or cut off.
std::string on_the_right(std::string_view text, std::size_t width);
std::string on_the_left(std::string_view text, std::size_t width);
/// "3/15 s": the age, and its limit.
std::string age_of(std::chrono::microseconds age, std::chrono::microseconds most);
/// If it is too long, its beginning and more of its end, where an error's cause is.
std::string shortened(std::string_view text, std::size_t width);
/// Styles the text up to the colon, if there is one.
Line marked(std::string_view text, Style style);

/// A name and a value.
struct Cell {
  std::string_view name;
  std::string value;
  Style style = Style::bold;
};
/// Cells of one width, as many side by side as fit, with their values aligned, so that no content
/// moves another cell.
Block grid(std::span<const Cell> cells, std::size_t width, std::size_t narrowest = 20);
/// Side by side, with two blanks between them.
Block beside(const Block& left, std::size_t left_width, const Block& right,
             std::size_t right_width);
/// The same block, dimmed.
Block dimmed(Block block);

}  // namespace stela::tool
