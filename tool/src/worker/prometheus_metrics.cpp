#include <stela/tool/metrics.hpp>

#include "worker/metric_writer.hpp"
#include "worker/reported_metrics.hpp"

#include <stela/framework/version.hpp>

#include <cmath>
#include <map>
#include <mutex>

namespace stela::tool {
namespace {

std::string_view help_of(std::string_view name) {
  for (const ReportedMetric& known : reported_metrics) {
    if (known.name == name) return known.help;
  }
  return "Reported to the metric sink.";
}

std::string text_of(MetricSink::Labels labels) {
  std::string text;
  for (const MetricSink::Label& label : labels) {
    if (!text.empty()) text += ',';
    text += label_text(label.name, label.value);
  }
  return text;
}

/// One metric with all of its labels' values.
struct Family {
  std::string_view type;
  std::map<std::string, double, std::less<>> values = {};
  std::map<std::string, Histogram, std::less<>> histograms = {};
};

}  // namespace

class PrometheusMetrics::Impl {
 public:
  /// The family of that name, if it is of that type: a name that means two things is shown once.
  Family* find(std::string_view name, std::string_view type) {
    auto at = families_.find(name);
    if (at == families_.end()) at = families_.emplace(name, Family{.type = type}).first;
    return at->second.type == type ? &at->second : nullptr;
  }
  const std::map<std::string, Family, std::less<>>& families() const noexcept { return families_; }

  mutable std::mutex mutex;

 private:
  // Guarded by mutex.
  std::map<std::string, Family, std::less<>> families_;
};

PrometheusMetrics::PrometheusMetrics() : impl_{std::make_unique<Impl>()} {}
PrometheusMetrics::~PrometheusMetrics() = default;

void PrometheusMetrics::count(std::string_view name, std::int64_t by, Labels labels) noexcept try {
  const std::lock_guard lock{impl_->mutex};
  Family* const family = impl_->find(name, "counter");
  if (family != nullptr && by >= 0) family->values[text_of(labels)] += static_cast<double>(by);
} catch (const std::exception&) {
}

void PrometheusMetrics::gauge(std::string_view name, double value, Labels labels) noexcept try {
  const std::lock_guard lock{impl_->mutex};
  Family* const family = impl_->find(name, "gauge");
  if (family != nullptr && std::isfinite(value)) family->values[text_of(labels)] = value;
} catch (const std::exception&) {
}

void PrometheusMetrics::observe(std::string_view name, double seconds, Labels labels) noexcept try {
  if (!std::isfinite(seconds)) return;
  const std::lock_guard lock{impl_->mutex};
  Family* const family = impl_->find(name, "histogram");
  if (family != nullptr) family->histograms[text_of(labels)].add_seconds(seconds);
} catch (const std::exception&) {
}

std::string PrometheusMetrics::text() const {
  MetricWriter writer;
  const std::lock_guard lock{impl_->mutex};
  for (const auto& [name, family] : impl_->families()) {
    writer.begin(name, family.type, help_of(name));
    for (const auto& [labels, value] : family.values) writer.labelled(value, labels);
    for (const auto& [labels, histogram] : family.histograms) writer.histogram(histogram, labels);
  }
  writer.begin("stela_build_info", "gauge", "1, with the version of Stela.")
      .value(1.0, {{"version", version()}});
  return std::move(writer).text();
}

}  // namespace stela::tool
