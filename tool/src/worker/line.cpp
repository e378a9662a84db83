#include "worker/line.hpp"

#include "cli/text.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace stela::tool {
namespace {

std::size_t columns_of(const Line& line) {
  std::size_t width = 0;
  for (const Span& span : line) width += width_of(span.text);
  return width;
}

}  // namespace

Line fitted(const Line& line, std::size_t width) {
  Line out;
  std::size_t left = width;
  for (const Span& span : line) {
    Span cut{cut_to(span.text, left), span.style};
    left -= std::min(left, width_of(cut.text));
    out.push_back(std::move(cut));
    if (left == 0) break;
  }
  if (left > 0) out.push_back({std::string(left, ' ')});
  return out;
}

Line title(std::string_view text, std::size_t width) {
  Line line{{std::string{text}.append(" "), Style::bold}};
  std::string rule;
  for (std::size_t i = columns_of(line); i < width; ++i) rule += "─";
  line.push_back({rule, Style::dim});
  return line;
}

Block flowing(std::span<const Line> items, std::size_t width) {
  Block block;
  std::size_t used = 0;
  for (const Line& item : items) {
    const std::size_t columns = columns_of(item);
    if (block.empty() || used + 2 + columns > width) {
      block.emplace_back();
      used = 0;
    } else {
      block.back().push_back({"  "});
      used += 2;
    }
    block.back().insert(block.back().end(), item.begin(), item.end());
    used += columns;
  }
  return block;
}

Block wrapped(std::string_view text, Style style, std::size_t indent, std::size_t width) {
  Block block;
  std::string line;
  std::size_t words = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (words > 0 && width_of(line) + 1 + width_of(word) > width) {
      block.push_back({{std::exchange(line, std::string(indent, ' ')), style}});
      words = 0;
    }
    if (words++ > 0) line += ' ';
    line += word;
  }
  if (words > 0) block.push_back({{line, style}});
  return block;
}

void append(Block& block, Block more) {
  block.insert(block.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

}  // namespace stela::tool
