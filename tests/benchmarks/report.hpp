// Figures, as a table for people and as JSON lines for programs.
#pragma once

#include "measure.hpp"
#include "place.hpp"

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::bench {

/// What a figure is to reach: its ratio, or for `limit` Stela's own value.
struct Goal {
  enum class Kind : unsigned char { at_least, at_most, limit };
  Kind kind = Kind::at_least;
  double value = 0;
};
inline Goal at_least(double value) {
  return {Goal::Kind::at_least, value};
}
inline Goal at_most(double value) {
  return {Goal::Kind::at_most, value};
}
inline Goal limit(double value) {
  return {Goal::Kind::limit, value};
}

struct Figure {
  /// Dotted, from the general to the particular: "append.1.full.disk.save".
  std::string name = {};
  std::string what = {};
  /// full, relaxed, or "read".
  std::string mode = {};
  Place place = Place::disk;
  std::string unit = "events/s";
  double stela = 0;
  double raw = 0;
  Spread ratio = {};
  std::optional<Goal> goal = {};
  /// Further numbers, for the JSON line only.
  std::vector<std::pair<std::string, double>> more = {};

  bool reaches_goal() const noexcept;
};

/// Threads: one at a time.
class Report {
 public:
  void add(Figure figure) { figures_.push_back(std::move(figure)); }
  /// Something to be read together with the figures.
  void note(std::string text) { notes_.push_back(std::move(text)); }

  const std::vector<Figure>& figures() const noexcept { return figures_; }

  /// A table in Markdown, its columns aligned.
  void print_table(std::ostream& out) const;
  void print_json_lines(std::ostream& out) const;

 private:
  std::vector<Figure> figures_;
  std::vector<std::string> notes_;
};

/// 1234567.8 as "1,234,568", 2.345 as "2.35": three digits that matter, at least.
std::string in_digits(double value);

}  // namespace stela::bench
