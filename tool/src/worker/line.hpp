// Lines of styled text, and how they are fitted to a width.
#pragma once

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
/// In as few lines as can be, two blanks between the items. No item is broken; one that is wider
/// than the line has a line of its own.
Block flowing(std::span<const Line> items, std::size_t width);
/// Broken between words, all lines but the first behind `indent` blanks. The text must have no
/// control characters.
Block wrapped(std::string_view text, Style style, std::size_t indent, std::size_t width);

void append(Block& block, Block more);

}  // namespace stela::tool
