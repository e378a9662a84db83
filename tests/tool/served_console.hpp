// A console that is served, and those who ask it.
#pragma once

#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/http.hpp"
#include "tool/json_walk.hpp"
#include "tool/program.hpp"

#include <stela/eventstore/sqlite.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace stela::test {

inline std::string text_of(const std::string& path) {
  std::ifstream in{path};
  return {std::istreambuf_iterator<char>{in}, {}};
}

/// For its owner alone.
inline void write_private(const std::string& path, const std::string& text) {
  std::filesystem::remove(path);
  std::ofstream{path} << text;
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
}

/// A store with a row of everything, and its console.
class ServedConsole : public ::testing::Test {
 protected:
  void SetUp() override {
    fill();
    write_private(token_file_, token_ + "\n");
    start();
  }

  virtual void fill() {
    Store store = open_or_create();
    populate(store, db_, [this](const std::string& sql) { RawSqlite{db_}.run(sql); });
  }

  virtual std::string place() const { return db_; }

  void start(const std::vector<std::string>& more = {}, const RunOptions& options = {}) {
    console_.reset();
    std::filesystem::remove(port_file_);
    std::vector<std::string> words{"serve",       "--db",     "shop=" + place(), "--listen", "0",
                                   "--port-file", port_file_, "--token-file",    token_file_};
    words.insert(words.end(), more.begin(), more.end());
    console_.emplace(words, options);
    ASSERT_TRUE(eventually([&] { return text_of(port_file_).ends_with('\n'); })) << console_->err();
    port_ = static_cast<std::uint16_t>(std::stoi(text_of(port_file_)));
    ASSERT_TRUE(eventually([&] { return console_->out().ends_with('\n'); }));
  }

  std::string host() const { return "Host: 127.0.0.1:" + std::to_string(port_) + "\r\n"; }
  std::string bearer(const std::string& token) const {
    return host() + "Authorization: Bearer " + token + "\r\n";
  }
  std::string request(const std::string& first_line, const std::string& fields) const {
    return ask(port_, first_line + " HTTP/1.1\r\n" + fields + "Connection: close\r\n\r\n");
  }
  /// With the token of programs.
  std::string data(const std::string& path) const {
    return request("GET /api/v1/s/shop/" + path, bearer(token_));
  }
  std::string post_json(const std::string& path, const std::string& fields,
                        const std::string& body) const {
    return ask(port_, "POST " + path + " HTTP/1.1\r\n" + fields +
                          "Content-Type: application/json\r\nConnection: close\r\n"
                          "Content-Length: " +
                          std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  /// What a browser has after its first visit.
  struct Browser {
    std::string cookie;
    std::string token;

    std::string fields() const {
      return "Cookie: " + cookie + "\r\nStela-Token: " + token + "\r\n";
    }
  };
  static Browser opened_by(const std::string& answer) {
    const std::size_t at = answer.find("Set-Cookie: ");
    if (at == std::string::npos) return {};
    return {answer.substr(at + 12, answer.find(';', at) - at - 12),
            member(body_of(answer), "token")};
  }
  Browser visit() {
    const std::string link = console_->out();
    return opened_by(post_json("/api/v1/session", host(),
                               R"({"key":")" + link.substr(link.find("#k=") + 3, 64) + "\"}"));
  }

  Store open_or_create() { return sqlite::open(db_, {.durability = sqlite::Durability::relaxed}); }

  const TempDir folder_;
  const std::string db_ = folder_.file("shop.db");
  const std::string port_file_ = folder_.file("port");
  const std::string token_file_ = folder_.file("token");
  const std::string token_ = std::string(64, 'a');
  std::optional<Running> console_;
  std::uint16_t port_ = 0;
};

}  // namespace stela::test
