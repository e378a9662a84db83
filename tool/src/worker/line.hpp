// Lines of styled text, and how they are fitted to a width.
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

/// Exactly `width` columns: cut off, or filled with blanks.
Line fitted(const Line& line, std::size_t width);
/// The text, and a rule to the end of the line.
Line title(std::string_view text, std::size_t width);
/// Broken between words, and within those that are wider than a line; all lines but the first
/// behind `indent` blanks. The text must have no control characters.
Block wrapped(std::string_view text, Style style, std::size_t indent, std::size_t width);

void append(Block& block, Block more);
void append(Line& line, Line more);

/// Filled with blanks on that side, or cut off.
std::string on_the_right(std::string_view text, std::size_t width);
std::string on_the_left(std::string_view text, std::size_t width);
/// "3/15 s": so long ago, of so long that it may be.
std::string age_of(std::chrono::microseconds age, std::chrono::microseconds most);
/// Its beginning and more of its end, where the cause of an error is, if it is too long.
std::string shortened(std::string_view text, std::size_t width);
/// In the style up to the colon, if there is one.
Line marked(std::string_view text, Style style);

/// A name and a value.
struct Cell {
  std::string_view name;
  std::string value;
  Style style = Style::bold;
};
/// Cells of one width, as many beside each other as there is room for, their values under each
/// other: what they say moves none.
Block grid(std::span<const Cell> cells, std::size_t width, std::size_t narrowest = 20);
/// Side by side, two blanks between them.
Block beside(const Block& left, std::size_t left_width, const Block& right,
             std::size_t right_width);
/// The same, all dim.
Block dimmed(Block block);

}  // namespace stela::tool
