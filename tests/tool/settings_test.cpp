// What the configuration says reaches the library's options.
#include "cli/settings.hpp"
#include "broker.hpp"
#include "cli/exit.hpp"

#include <stela/eventstore/detail/sqlite_settings.hpp>
#include <stela/nats/detail/settings.hpp>
#include <stela/outbox/detail/settings.hpp>
#include <stela/projections/detail/settings.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stela::tool::settings_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Settings with(std::initializer_list<std::pair<const char*, const char*>> values) {
  Settings settings;
  for (const auto& [key, text] : values) settings.set(key, text, "a test");
  return settings;
}

std::string refusal(const char* key, const std::string& text) {
  try {
    Settings{}.set(key, text, "a test");
  } catch (const Misuse& e) {
    return e.what();
  }
  return "none";
}

TEST(ToolSettings, ReachTheRelay) {
  const RelayOptions options = relay_options(with({{"worker.id", "ann"},
                                                   {"outbox.lease_ttl", "2m"},
                                                   {"outbox.idle_backoff_ms", "250"},
                                                   {"outbox.publish_timeout", "3s"},
                                                   {"outbox.max_in_flight_bytes", "7"},
                                                   {"outbox.retry_jitter", "0.5"},
                                                   {"outbox.on_poison", "skip"},
                                                   {"outbox.retention", "2d"}}));
  EXPECT_EQ(options.worker, "ann");
  EXPECT_EQ(options.lease_ttl, 2min);
  EXPECT_EQ(options.idle_backoff, 250ms);
  EXPECT_EQ(options.publish_timeout, 3s);
  EXPECT_EQ(options.max_in_flight_bytes, 7);
  EXPECT_EQ(options.retry_jitter, 0.5);
  EXPECT_EQ(options.on_poison, OnPoison::skip);
  EXPECT_EQ(options.retention, 48h);
  EXPECT_EQ(options.batch_size, RelayOptions{}.batch_size);
}

TEST(ToolSettings, ReachThePublisher) {
  const nats::PublisherOptions options = broker_options(with({{"nats.url", "nats://there"},
                                                              {"nats.replicas", "3"},
                                                              {"nats.max_age", "1h"},
                                                              {"nats.user", "ann"},
                                                              {"nats.api_prefix", "JS.x"},
                                                              {"nats.tls", "true"},
                                                              {"nats.tls_host_name", "broker"},
                                                              {"nats.allow_binary_wire", "true"},
                                                              {"outbox.publish_timeout", "3s"}}),
                                                        Fence::subject, by_stream());
  EXPECT_EQ(options.url, "nats://there");
  EXPECT_EQ(options.stream_options.replicas, 3);
  EXPECT_EQ(options.stream_options.max_age, 1h);
  EXPECT_EQ(options.credentials.user, "ann");
  EXPECT_EQ(options.api.prefix, "JS.x");
  EXPECT_TRUE(options.tls.required);
  EXPECT_EQ(options.tls.host_name, "broker");
  EXPECT_EQ(options.codec, Codec::portable_binary);
  EXPECT_EQ(options.publish_timeout, 3s);
  EXPECT_EQ(options.fence, Fence::subject);
  EXPECT_EQ(options.connect_timeout, nats::PublisherOptions{}.connect_timeout);
}

TEST(ToolSettings, SetFactsOfAnOutboxOnlyIfTheyAreGiven) {
  OutboxOptions options;
  with({{"outbox.fence", "none"}, {"outbox.leasing", "false"}})
      .apply("outbox", outbox_settings(), options);
  EXPECT_EQ(options.fence, Fence::none);
  EXPECT_EQ(options.leasing, false);
  EXPECT_EQ(options.partition_count, std::nullopt);
}

TEST(ToolSettings, HaveTheLibrarysRanges) {
  EXPECT_EQ(refusal("outbox.window", "100000"), "none");
  EXPECT_THAT(refusal("outbox.window", "100001"),
              HasSubstr("a test: outbox.window is a whole number from 1 to 100000, not '100001'"));
  EXPECT_THAT(refusal("outbox.lease_ttl", "0s"),
              HasSubstr("is above 0, and at most 8760 h, not '0s'"));
  EXPECT_THAT(refusal("outbox.retention", "30m"), HasSubstr("is 1 h or more, not '30m'"));
  EXPECT_THAT(refusal("outbox.idle_backoff_ms", "1s"), HasSubstr("is a whole number from 1 to "));
  EXPECT_THAT(refusal("outbox.retry_jitter", "nan"), HasSubstr("is a number from 0 to 1"));
  EXPECT_THAT(refusal("worker.id", std::string(129, 'w')), HasSubstr("is at most 128 bytes long"));
  EXPECT_THAT(refusal("nats.replicas", "6"), HasSubstr("from 1 to 5"));
  EXPECT_EQ(refusal("worker.id", ""), "none");
}

template <class Options>
void expect_sound(std::span<const Setting<Options>> settings, const Options& standard) {
  EXPECT_NO_THROW(check_ranges(settings, standard));
  for (const Setting<Options>& setting : settings) EXPECT_NE(setting.summary, "") << setting.name;
}

TEST(ToolSettings, HaveDefaultsThatTheyAllow) {
  expect_sound(sqlite::settings(), sqlite::Options{});
  expect_sound(outbox_settings(), OutboxOptions{});
  expect_sound(relay_settings(), RelayOptions{});
  expect_sound(projector_settings(), ProjectorOptions{});
  expect_sound(runner_settings(), RunnerOptions{});
  expect_sound(nats::publisher_settings(), nats::PublisherOptions{});
  expect_sound(nats::consumer_settings(), nats::ConsumerOptions{});
  // One setting has both.
  EXPECT_EQ(nats::PublisherOptions{}.publish_timeout, RelayOptions{}.publish_timeout);
  for (const ConfiguredSetting& setting : all_settings()) {
    if (setting.standard.empty()) continue;
    EXPECT_EQ(refusal(setting.key.c_str(), setting.standard), "none") << setting.key;
  }
}

}  // namespace
}  // namespace stela::tool::settings_test
