// The first page's data: one snapshot per second for all viewers.
#pragma once

#include "console/api.hpp"
#include "console/people.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace stela::tool {

/// Queries the store only while somebody looks, and never twice at once. Threads: any.
class Overview {
 public:
  using Clock = std::chrono::steady_clock;

  /// `asks_broker`: also asks a broker. Parts that need one are refreshed every ten seconds.
  Overview(const Api& api, const ServedStore& store, bool asks_broker)
      : api_{api}, store_{store}, asks_broker_{asks_broker} {}

  /// Answers from the current snapshot, if it is less than a second old.
  std::optional<HttpResponse> answer_at_once(const HttpRequest& request, Payloads shown);
  /// Makes a snapshot, or waits for the one in progress.
  HttpResponse answer(const HttpRequest& request, Payloads shown);

 private:
  static constexpr std::size_t most_parts = 9;

  HttpResponse in_answer(const HttpRequest& request, Payloads shown);
  bool is_fresh(Clock::time_point now) const { return !as_of_.empty() && now < until_; }
  /// Returns the position and time of the snapshot.
  std::string ask_all(Clock::time_point now);
  std::string in_json(Payloads shown) const;
  std::string ask_part(std::size_t part) const;

  const Api& api_;
  const ServedStore& store_;
  const bool asks_broker_;

  std::mutex mutex_;
  std::condition_variable made_;
  bool is_making_ = false;
  std::string as_of_;
  /// By the visibility of payloads. Each is made on first use.
  std::array<std::string, 3> json_;
  std::uint64_t number_ = 0;
  Clock::time_point until_;
  /// The parts that are refreshed less often.
  std::array<std::string, most_parts> kept_;
  Clock::time_point kept_until_;
};

}  // namespace stela::tool
