#include "report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ostream>

namespace stela::bench {
namespace {

constexpr std::size_t column_count = 7;
using Row = std::array<std::string, column_count>;

std::string formatted(const char* format, double value) {
  std::array<char, 64> text{};
  const int size = std::snprintf(text.data(), text.size(), format, value);
  return {text.data(), static_cast<std::size_t>(size)};
}

/// Characters, not bytes: the table has a µ, a ≥ and dashes in it.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string in_words(const Spread& ratio) {
  std::string text = formatted("%.2f", ratio.median);
  if (ratio.min != ratio.max) {
    text += formatted(" (%.2f", ratio.min) + "–" + formatted("%.2f)", ratio.max);
  }
  return text;
}

std::string in_words(const Figure& figure) {
  if (!figure.goal) return "–";
  std::string text = figure.goal->kind == Goal::Kind::at_least ? "≥ " : "≤ ";
  text += formatted("%.2f", figure.goal->value);
  if (figure.goal->kind == Goal::Kind::limit) text += ' ' + figure.unit;
  return text + (figure.reaches_goal() ? " ✓" : " missed");
}

Row row_of(const Figure& figure) {
  std::string where = figure.mode;
  where += ", ";
  where += to_string(figure.place);
  return {figure.name,
          figure.what,
          where,
          in_digits(figure.stela) + ' ' + figure.unit,
          in_digits(figure.raw),
          in_words(figure.ratio),
          in_words(figure)};
}

std::string_view in_words(Goal::Kind kind) {
  switch (kind) {
    case Goal::Kind::at_least:
      return "the least ratio";
    case Goal::Kind::at_most:
      return "the greatest ratio";
    default:
      return "the greatest value of Stela's";
  }
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out += '"';
}

/// JSON knows neither NaN nor infinity.
std::string number(double value) {
  return std::isfinite(value) ? formatted("%.6g", value) : "null";
}

std::string json_line(const Figure& figure) {
  std::string line = "{";
  const auto add = [&](std::string_view name, const std::string& value) {
    if (line.size() > 1) line += ',';
    line += in_quotes(name);
    line += ':';
    line += value;
  };
  add("figure", in_quotes(figure.name));
  add("what", in_quotes(figure.what));
  add("mode", in_quotes(figure.mode));
  add("place", in_quotes(to_string(figure.place)));
  add("unit", in_quotes(figure.unit));
  add("stela", number(figure.stela));
  add("raw", number(figure.raw));
  add("ratio", number(figure.ratio.median));
  add("ratio_min", number(figure.ratio.min));
  add("ratio_max", number(figure.ratio.max));
  add("goal", figure.goal ? number(figure.goal->value) : "null");
  if (figure.goal) {
    add("goal_is", in_quotes(in_words(figure.goal->kind)));
    add("reached", figure.reaches_goal() ? "true" : "false");
  }
  for (const auto& [name, value] : figure.more) add(name, number(value));
  return line + '}';
}

}  // namespace

bool Figure::reaches_goal() const noexcept {
  if (!goal) return true;
  if (goal->kind == Goal::Kind::at_least) return ratio.median >= goal->value;
  return (goal->kind == Goal::Kind::limit ? stela : ratio.median) <= goal->value;
}

std::string in_digits(double value) {
  if (std::abs(value) < 100) return formatted("%.2f", value);
  if (std::abs(value) < 1000) return formatted("%.1f", value);
  std::string digits = formatted("%.0f", value);
  for (std::size_t i = digits.size(); i > 3; i -= 3) {
    if (digits[i - 4] != '-') digits.insert(i - 3, 1, ',');
  }
  return digits;
}

void Report::print_table(std::ostream& out) const {
  std::vector<Row> rows;
  rows.push_back({"figure", "what", "mode, place", "Stela", "raw", "Stela ÷ raw", "goal"});
  for (const Figure& figure : figures_) rows.push_back(row_of(figure));
  std::array<std::size_t, column_count> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < column_count; ++i) {
      out << "| " << rows[r][i] << std::string(widths[i] - width_of(rows[r][i]) + 1, ' ');
    }
    out << "|\n";
    if (r > 0) continue;
    for (const std::size_t width : widths) out << '|' << std::string(width + 2, '-');
    out << "|\n";
  }
  if (!notes_.empty()) out << '\n';
  for (const std::string& text : notes_) out << "- " << text << '\n';
}

void Report::print_json_lines(std::ostream& out) const {
  for (const Figure& figure : figures_) out << json_line(figure) << '\n';
}

}  // namespace stela::bench
