// Prometheus' text form.
#pragma once

#include "worker/histogram.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace stela::tool {

/// `a="b",c="d"`, of values that may be anything.
std::string label_text(std::string_view name, std::string_view value);

/// Writes metrics one behind the other.
/// Threads: one at a time.
class MetricWriter {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  /// What follows are values of this one. `type` is "counter", "gauge" or "histogram".
  MetricWriter& begin(std::string_view name, std::string_view type, std::string_view help);
  MetricWriter& value(double number, Labels labels = {});
  MetricWriter& value(std::int64_t number, Labels labels = {}) {
    return value(static_cast<double>(number), labels);
  }
  /// With labels as label_text makes them.
  MetricWriter& labelled(double number, std::string_view labels);
  MetricWriter& histogram(const Histogram& histogram, std::string_view labels = {});

  std::string text() && { return std::move(out_); }

 private:
  void line(std::string_view suffix, std::string_view labels, double number);

  std::string out_;
  std::string name_;
};

}  // namespace stela::tool
