#include "worker/line.hpp"

#include "cli/text.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace stela::tool {
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
  for (std::size_t i = width_of(line.front().text); i < width; ++i) rule += "─";
  line.push_back({rule, Style::dim});
  return line;
}

namespace {

/// The size of the longest prefix that fits, at least one character.
std::size_t beginning_of(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t next = 1; end < text.size(); end = next++) {
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xc0) == 0x80) ++next;
    if (end > 0 && width_of(text.substr(0, next)) > width) break;
  }
  return end;
}

}  // namespace

Block wrapped(std::string_view text, Style style, std::size_t indent, std::size_t width) {
  Block block;
  std::string line;
  std::size_t words = 0;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    const std::size_t room = width > indent + 1 ? width - indent : 1;
    const bool is_too_long = width_of(word) > room;
    if (is_too_long) word = word.substr(0, beginning_of(word, room));
    text.remove_prefix(std::min(word.size() + (is_too_long ? 0 : 1), text.size()));
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

void append(Line& line, Line more) {
  line.insert(line.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

std::string on_the_right(std::string_view text, std::size_t width) {
  const std::string cut = cut_to(text, width);
  return std::string(width - width_of(cut), ' ') + cut;
}

std::string on_the_left(std::string_view text, std::size_t width) {
  const std::string cut = cut_to(text, width);
  return cut + std::string(width - width_of(cut), ' ');
}

std::string age_of(std::chrono::microseconds age, std::chrono::microseconds most) {
  const auto seconds = [](std::chrono::microseconds time) {
    return in_digits(std::max<std::int64_t>(time / std::chrono::seconds{1}, 0));
  };
  return seconds(age) + "/" + seconds(most) + " s";
}

std::string shortened(std::string_view text, std::size_t width) {
  if (width_of(text) <= width) return std::string{text};
  // No byte is wider than a column. Continuation bytes stay with their character.
  std::size_t end = text.size() - std::min(text.size(), width * 2 / 3);
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
  return cut_to(text, width / 3).append(text.substr(end));
}

Line marked(std::string_view text, Style style) {
  const std::size_t end = std::min(text.find(": "), text.size());
  return {{std::string{text.substr(0, end)}, style}, {std::string{text.substr(end)}}};
}

Block grid(std::span<const Cell> cells, std::size_t width, std::size_t narrowest) {
  const std::size_t columns = std::max<std::size_t>((width + 1) / narrowest, 1);
  std::vector<std::size_t> names(columns);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    names[i % columns] = std::max(names[i % columns], width_of(cells[i].name));
  }
  Block block;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t at = i % columns;
    if (at == 0) block.emplace_back();
    // The distance to the next column, less the blank between them.
    const std::size_t room = (width + 1) * (at + 1) / columns - (width + 1) * at / columns - 1;
    const std::size_t value = width_of(cells[i].value);
    // A value that doesn't fit after the longest name begins earlier.
    const std::size_t begin = std::min(names[at] + 1, room > value ? room - value : 0);
    if (at > 0) block.back().push_back({" "});
    block.back().push_back({on_the_left(cells[i].name, std::max<std::size_t>(begin, 1) - 1) + ' '});
    block.back().push_back({on_the_left(cells[i].value, room - begin), cells[i].style});
  }
  return block;
}

Block beside(const Block& left, std::size_t left_width, const Block& right,
             std::size_t right_width) {
  Block block;
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    block.push_back(fitted(i < left.size() ? left[i] : Line{}, left_width));
    block.back().push_back({"  "});
    append(block.back(), fitted(i < right.size() ? right[i] : Line{}, right_width));
  }
  return block;
}

Block dimmed(Block block) {
  for (Line& line : block) {
    for (Span& span : line) span.style = Style::dim;
  }
  return block;
}

}  // namespace stela::tool
