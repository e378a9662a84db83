#include <stela/tool/metrics.hpp>

#include "description/metric_writer.hpp"
#include "worker/reported_metrics.hpp"
#include "worker/store_metrics.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/version.hpp>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace stela::tool {
namespace {

std::string_view help_of(std::string_view name) {
  for (const Metric& known : reported_metrics) {
    if (known.name == name) return known.help;
  }
  return "Reported to the metric sink.";
}

std::string store_label(std::string_view name) {
  return name.empty() ? std::string{} : label_text("store", name);
}

/// The text of the labels, beginning with the store's.
std::string text_of(std::string_view store, MetricSink::Labels labels) {
  std::string text{store};
  for (const MetricSink::Label& label : labels) {
    if (!text.empty()) text += ',';
    text += label_text(label.name, label.value);
  }
  return text;
}

/// One metric with the values of all its labels.
struct Family {
  std::string_view type;
  std::map<std::string, double, std::less<>> values = {};
  std::map<std::string, Histogram, std::less<>> histograms = {};
};

/// The reported metrics. Threads: any.
class Reported {
 public:
  void count(std::string_view store, std::string_view name, std::int64_t by,
             MetricSink::Labels labels) {
    const std::lock_guard lock{mutex_};
    Family* const family = find(name, "counter");
    if (family == nullptr || by < 0) return;
    family->values[text_of(store, labels)] += static_cast<double>(by);
  }
  void gauge(std::string_view store, std::string_view name, double value,
             MetricSink::Labels labels) {
    const std::lock_guard lock{mutex_};
    Family* const family = find(name, "gauge");
    if (family != nullptr && std::isfinite(value)) family->values[text_of(store, labels)] = value;
  }
  void observe(std::string_view store, std::string_view name, double seconds,
               MetricSink::Labels labels) {
    if (!std::isfinite(seconds)) return;
    const std::lock_guard lock{mutex_};
    Family* const family = find(name, "histogram");
    if (family != nullptr) family->histograms[text_of(store, labels)].add_seconds(seconds);
  }

  void write(MetricWriter& out) const {
    const std::lock_guard lock{mutex_};
    for (const auto& [name, family] : families_) {
      out.begin(name, family.type, help_of(name));
      for (const auto& [labels, value] : family.values) out.value(value, labels);
      for (const auto& [labels, histogram] : family.histograms) out.histogram(histogram, labels);
    }
  }

 private:
  /// The family of that name and type. Null if the name has another type: it is then shown once.
  Family* find(std::string_view name, std::string_view type) {
    auto at = families_.find(name);
    if (at == families_.end()) at = families_.emplace(name, Family{.type = type}).first;
    return at->second.type == type ? &at->second : nullptr;
  }

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, Family, std::less<>> families_;
};

/// Reports with the label of one store.
class StoreSink final : public MetricSink {
 public:
  StoreSink(Reported& reported, std::string_view store)
      : reported_{reported}, label_{store_label(store)} {}

  void count(std::string_view name, std::int64_t by, Labels labels) noexcept override try {
    reported_.count(label_, name, by, labels);
  } catch (const std::exception&) {
  }
  void gauge(std::string_view name, double value, Labels labels) noexcept override try {
    reported_.gauge(label_, name, value, labels);
  } catch (const std::exception&) {
  }
  void observe(std::string_view name, double seconds, Labels labels) noexcept override try {
    reported_.observe(label_, name, seconds, labels);
  } catch (const std::exception&) {
  }

 private:
  Reported& reported_;
  const std::string label_;
};

/// A watched store.
struct MeasuredStore {
  Store& store;
  std::string name;
};

/// The watched stores. Threads: any.
class WatchedStores {
 public:
  /// Returns an object that ends the watching when it is destroyed.
  std::shared_ptr<void> add(Store& store, std::string_view name) {
    const auto watched = std::make_shared<MeasuredStore>(MeasuredStore{store, std::string{name}});
    const std::shared_ptr<void> watching{watched.get(),
                                         [this](const void* ended) { remove(ended); }};
    const std::lock_guard lock{mutex_};
    for (const auto& other : stores_) {
      if (other->name != name) continue;
      throw UsageError{"the store '" + std::string{name} + "' is watched already"};
    }
    stores_.push_back(watched);
    return watching;
  }

  void write(MetricWriter& out) {
    // Holds no lock while it reads a database: the end of a watch waits for readers.
    std::vector<std::shared_ptr<MeasuredStore>> stores;
    {
      const std::lock_guard lock{mutex_};
      stores = stores_;
      ++readers_;
    }
    struct Leave {
      WatchedStores& all;
      ~Leave() { all.leave(); }
    } const leave{*this};
    for (const auto& watched : stores) {
      out.label_all(store_label(watched->name));
      write_store(out, watched->store);
    }
    out.label_all({});
  }

 private:
  void leave() {
    const std::lock_guard lock{mutex_};
    if (--readers_ == 0) nobody_reads_.notify_all();
  }
  void remove(const void* ended) {
    std::unique_lock lock{mutex_};
    nobody_reads_.wait(lock, [&] { return readers_ == 0; });
    std::erase_if(stores_, [&](const auto& watched) { return watched.get() == ended; });
  }

  std::mutex mutex_;
  std::condition_variable nobody_reads_;
  // Guarded by mutex_.
  std::vector<std::shared_ptr<MeasuredStore>> stores_;
  int readers_ = 0;
};

}  // namespace

class PrometheusMetrics::Impl {
 public:
  Reported reported;
  StoreSink own{reported, {}};
  WatchedStores watched;

  MetricSink& sink(std::string_view store) {
    const std::lock_guard lock{mutex_};
    const auto known = sinks_.find(store);
    if (known != sinks_.end()) return *known->second;
    auto made = std::make_unique<StoreSink>(reported, store);
    return *sinks_.emplace(store, std::move(made)).first->second;
  }

 private:
  std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, std::unique_ptr<StoreSink>, std::less<>> sinks_;
};

PrometheusMetrics::PrometheusMetrics() : impl_{std::make_unique<Impl>()} {}
PrometheusMetrics::~PrometheusMetrics() = default;

MetricSink& PrometheusMetrics::sink(std::string_view store) {
  return impl_->sink(store);
}

Subscription PrometheusMetrics::watch(Store& store, std::string_view name) {
  return Subscription{impl_->watched.add(store.anchor(), name)};
}

void PrometheusMetrics::count(std::string_view name, std::int64_t by, Labels labels) noexcept {
  impl_->own.count(name, by, labels);
}

void PrometheusMetrics::gauge(std::string_view name, double value, Labels labels) noexcept {
  impl_->own.gauge(name, value, labels);
}

void PrometheusMetrics::observe(std::string_view name, double seconds, Labels labels) noexcept {
  impl_->own.observe(name, seconds, labels);
}

std::string PrometheusMetrics::text() const {
  MetricWriter writer;
  impl_->watched.write(writer);
  impl_->reported.write(writer);
  writer.begin("stela_build_info", "gauge", "1, with the version of Stela.")
      .value(1.0, label_text("version", version()));
  return std::move(writer).text();
}

}  // namespace stela::tool
