// What Stela's parts report, for Prometheus to fetch.
#pragma once

#include <stela/framework/log.hpp>
#include <stela/tool/export.hpp>

#include <memory>
#include <string>

namespace stela::tool {

/// A sink for the metrics of stores, relays and runners that adds up what it is told: give it to
/// the store, and serve its text where Prometheus asks for it. `outbox work --metrics` and
/// `projections run --metrics` do so by themselves.
/// Threads: any.
class STELA_TOOL_EXPORT PrometheusMetrics final : public MetricSink {
 public:
  PrometheusMetrics();
  ~PrometheusMetrics() override;
  PrometheusMetrics(const PrometheusMetrics&) = delete;
  PrometheusMetrics& operator=(const PrometheusMetrics&) = delete;

  /// Without memory for it a number is missing.
  void count(std::string_view name, std::int64_t by, Labels labels) noexcept override;
  void gauge(std::string_view name, double value, Labels labels) noexcept override;
  void observe(std::string_view name, double seconds, Labels labels) noexcept override;

  /// All of it in Prometheus' text form, by name; docs/reference/metrics.md says what each is.
  std::string text() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stela::tool
