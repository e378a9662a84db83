// Places orders as fast as possible, and reports the rate.
#include "commands.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <iomanip>
#include <iostream>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace orders {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

/// Each thread has its own articles, as in a shop with many articles.
constexpr int articles_per_thread = 8;

std::string article(int thread, std::int64_t number) {
  return "load-" + std::to_string(thread) + "-" + std::to_string(number % articles_per_thread);
}

struct Placing {
  std::string run;
  std::int64_t orders = 0;
  int threads = 1;
  std::atomic<std::int64_t> next{0};
  std::atomic<std::int64_t> placed{0};
  std::mutex mutex;
  std::vector<double> latencies;
  std::exception_ptr error;
};

void place_orders(Shop& shop, Placing& placing, int thread) {
  std::vector<double> latencies;
  try {
    for (std::int64_t n = placing.next++; n < placing.orders; n = placing.next++) {
      const auto begin = Clock::now();
      shop.place(OrderId::from(placing.run + "-" + std::to_string(n)),
                 {placing.run, article(thread, n), 1, {100, "EUR"}});
      latencies.push_back(Milliseconds{Clock::now() - begin}.count());
      ++placing.placed;
    }
  } catch (...) {
    const std::lock_guard lock{placing.mutex};
    placing.error = std::current_exception();
    placing.next = placing.orders;
  }
  const std::lock_guard lock{placing.mutex};
  placing.latencies.insert(placing.latencies.end(), latencies.begin(), latencies.end());
}

void draw_progress(const Placing& placing, Clock::time_point begin) {
  constexpr std::int64_t width = 40;
  const std::int64_t placed = placing.placed;
  const double seconds = std::chrono::duration<double>{Clock::now() - begin}.count();
  const std::int64_t full = placing.orders == 0 ? width : width * placed / placing.orders;
  std::cerr << "\r  [" << std::string(static_cast<std::size_t>(full), '#')
            << std::string(static_cast<std::size_t>(width - full), '.') << "] " << placed << " of "
            << placing.orders << ", "
            << static_cast<std::int64_t>(static_cast<double>(placed) / std::max(seconds, 0.001))
            << " a second " << std::flush;
}

/// Returns the time that it took, in seconds.
double place_all(Shop& shop, Placing& placing) {
  const auto begin = Clock::now();
  // Draws on its own thread, so that its pauses aren't measured.
  std::jthread drawing;
  if (isatty(STDERR_FILENO) != 0) {
    drawing = std::jthread{[&placing, begin](const std::stop_token& stop) {
      std::mutex mutex;
      std::unique_lock lock{mutex};
      std::condition_variable_any stopped;
      do {
        draw_progress(placing, begin);
      } while (!stopped.wait_for(lock, stop, std::chrono::milliseconds{100},
                                 [&] { return stop.stop_requested(); }));
    }};
  }
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < placing.threads; ++thread) {
      threads.emplace_back([&, thread] { place_orders(shop, placing, thread); });
    }
  }
  return std::chrono::duration<double>{Clock::now() - begin}.count();
}

void report(Placing& placing, double seconds) {
  std::sort(placing.latencies.begin(), placing.latencies.end());
  const auto at = [&](double share) {
    const auto size = static_cast<double>(placing.latencies.size());
    return placing.latencies[static_cast<std::size_t>(share * (size - 1))];
  };
  std::cout << std::fixed << std::setprecision(2) << placing.orders << " orders in " << seconds
            << " s: " << static_cast<std::int64_t>(static_cast<double>(placing.orders) / seconds)
            << " a second by " << placing.threads << " threads; placing one took " << at(0.5)
            << " ms (median), " << at(0.99) << " ms (99 of 100)\n";
}

}  // namespace

void load(Application& application, std::span<const std::string> arguments) {
  Placing placing;
  placing.run = "load-" + stela::make_uuid().to_string();
  placing.orders = number(arguments[0], "N");
  placing.threads = arguments.size() > 1 ? static_cast<int>(number(arguments[1], "THREADS")) : 8;
  if (placing.orders < 1 || placing.threads < 1 || placing.threads > 256) {
    throw stela::UsageError{"load needs 1 order or more, and 1 to 256 threads"};
  }
  Shop shop{application.store};
  const auto customer = CustomerId::from(placing.run);
  shop.register_customer(customer, "Load", "nowhere");
  for (int thread = 0; thread < placing.threads; ++thread) {
    for (int n = 0; n < articles_per_thread; ++n) {
      shop.receive(article(thread, n), placing.orders);
    }
  }
  const double seconds = place_all(shop, placing);
  if (placing.error) std::rethrow_exception(placing.error);
  if (isatty(STDERR_FILENO) != 0) std::cerr << "\r\x1b[K";
  report(placing, seconds);
}

}  // namespace orders
