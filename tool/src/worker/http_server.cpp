// Boost 1.74 needs it before asio.
#include <utility>

#include "cli/arguments.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "worker/http_server.hpp"

#define BOOST_ERROR_CODE_HEADER_ONLY 1
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace stela::tool {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds slowest_client{5};
/// Until a connection is accepted again, after there was no room for one.
constexpr std::chrono::milliseconds accept_pause{100};
constexpr std::size_t longest_head = 8 * 1024;
constexpr int most_connections = 64;
/// So many requests wait for a page; others are told to come again.
constexpr int most_waiting = 16;

using HttpHead = http::request_parser<http::empty_body>;

/// What the page throws is its answer.
template <class Page>
auto page_or_failure(const Page& page, std::string_view path) -> decltype(page(path)) {
  try {
    return page(path);
  } catch (const std::exception& e) {
    return HttpResponse{.status = 500, .body = in_one_line(e.what()) + "\n"};
  }
}

std::string in_http(HttpResponse response, bool with_body) {
  const auto reason = http::obsolete_reason(static_cast<http::status>(response.status));
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + ' ';
  text.append(reason.data(), reason.size());
  text += "\r\nContent-Type: " + response.content_type;
  text += "\r\nCache-Control: no-store\r\nConnection: close";
  text += "\r\nContent-Length: " + std::to_string(response.body.size()) + "\r\n\r\n";
  return with_body ? std::move(text) + response.body : text;
}

class HttpConnection;

/// What all connections share.
struct HttpShared {
  HttpPages pages;
  int open = 0;
  /// Those that haven't sent a whole request, the oldest first.
  std::vector<HttpConnection*> asking;
  int waiting = 0;
  asio::io_context clients{1};
  /// For pages that take their time.
  asio::io_context makers{1};
};

/// One connection: a request, its answer, and the end. All but the making of a page that takes its
/// time is done by the thread of the clients.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(tcp::socket socket, HttpShared& shared)
      : socket_{std::move(socket)}, limit_{shared.clients}, shared_{shared} {
    ++shared_.open;
    shared_.asking.push_back(this);
    head_.header_limit(longest_head);
  }
  ~HttpConnection() {
    std::erase(shared_.asking, this);
    --shared_.open;
  }

  void run() {
    limit_time();
    read();
  }

  /// Ends a connection that hasn't sent a whole request.
  void make_room() {
    std::erase(shared_.asking, this);
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  void limit_time() {
    limit_.expires_after(slowest_client);
    limit_.async_wait([self = weak_from_this()](const error_code& error) {
      const auto alive = self.lock();
      if (error || !alive) return;
      error_code ignored;
      alive->socket_.close(ignored);
    });
  }

  void read() {
    socket_.async_read_some(asio::buffer(buffer_.data() + size_, buffer_.size() - size_),
                            [self = shared_from_this()](const error_code& error, std::size_t size) {
                              if (!error) self->take(size);
                            });
  }

  /// A head that is too long or makes no sense ends the connection.
  void take(std::size_t size) {
    size_ += size;
    error_code error;
    const std::size_t used = head_.put(asio::buffer(buffer_.data(), size_), error);
    if (head_.is_header_done()) return respond();
    if (error && error != http::error::need_more) return;
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(used),
              buffer_.begin() + static_cast<std::ptrdiff_t>(size_), buffer_.begin());
    size_ -= used;
    if (size_ < buffer_.size()) read();
  }

  void respond() {
    std::erase(shared_.asking, this);
    // However long its page takes.
    limit_.cancel();
    const auto& request = head_.get();
    is_head_ = request.method() == http::verb::head;
    if (request.method() != http::verb::get && !is_head_) {
      return send({.status = 405, .body = "only GET and HEAD\n"});
    }
    path_.assign(request.target().data(), request.target().size());
    path_.resize(std::min(path_.size(), path_.find('?')));
    if (auto page = page_or_failure(shared_.pages.at_once, path_)) return send(std::move(*page));
    if (shared_.waiting == most_waiting) {
      return send({.status = 503, .body = "too many requests wait for their pages\n"});
    }
    ++shared_.waiting;
    asio::post(shared_.makers, [self = shared_from_this()]() mutable { make(std::move(self)); });
  }

  static void make(std::shared_ptr<HttpConnection> self) {
    HttpShared& shared = self->shared_;
    HttpResponse page = page_or_failure(shared.pages.in_time, self->path_);
    asio::post(shared.clients, [self = std::move(self), page = std::move(page)]() mutable {
      --self->shared_.waiting;
      self->send(std::move(page));
    });
  }

  void send(HttpResponse response) {
    answer_ = in_http(std::move(response), !is_head_);
    limit_time();
    asio::async_write(socket_, asio::buffer(answer_),
                      [self = shared_from_this()](const error_code&, std::size_t) {
                        error_code ignored;
                        self->socket_.shutdown(tcp::socket::shutdown_send, ignored);
                      });
  }

  tcp::socket socket_;
  asio::steady_timer limit_;
  std::array<char, longest_head> buffer_;
  std::size_t size_ = 0;
  HttpHead head_;
  bool is_head_ = false;
  std::string path_;
  std::string answer_;
  HttpShared& shared_;
};

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpAddress& address, HttpPages pages) {
    shared_.pages = std::move(pages);
    const std::string where = address.host + ":" + std::to_string(address.port);
    error_code error;
    const auto host = asio::ip::make_address(address.host, error);
    if (error) throw Misuse{"'" + in_one_line(address.host) + "' isn't an IP address"};
    const tcp::endpoint endpoint{host, address.port};
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address{true}, error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) throw Exit{failed, "can't listen on " + where + ": " + error.message()};
    accept();
    answering_ = std::jthread{[this] { shared_.clients.run(); }};
    making_ = std::jthread{[this] { shared_.makers.run(); }};
  }

  ~Impl() {
    shared_.clients.stop();
    shared_.makers.stop();
  }

  std::string url() const {
    const tcp::endpoint at = acceptor_.local_endpoint();
    const std::string host = at.address().to_string();
    return "http://" + (at.address().is_v6() ? "[" + host + "]" : host) + ":" +
           std::to_string(at.port());
  }

 private:
  void accept() {
    acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
      if (error) return accept_later();
      const bool is_full = shared_.open >= most_connections;
      const bool makes_room = is_full && !shared_.asking.empty();
      if (makes_room) shared_.asking.front()->make_room();
      if (!is_full || makes_room) {
        std::make_shared<HttpConnection>(std::move(socket), shared_)->run();
      }
      accept();
    });
  }

  /// There may be no file descriptor left: the client would be there again at once.
  void accept_later() {
    pause_.expires_after(accept_pause);
    pause_.async_wait([this](const error_code&) { accept(); });
  }

  HttpShared shared_;
  tcp::acceptor acceptor_{shared_.clients};
  asio::steady_timer pause_{shared_.clients};
  asio::executor_work_guard<asio::io_context::executor_type> keeps_making_{
      shared_.makers.get_executor()};
  std::jthread answering_;
  std::jthread making_;
};

HttpAddress parse_address(std::string_view text) {
  HttpAddress address;
  const std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    std::string_view host = text.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
      host = host.substr(1, host.size() - 2);
    }
    address.host = host;
    text.remove_prefix(colon + 1);
  }
  address.port = static_cast<std::uint16_t>(to_integer(text, "the port of metrics", {0, 65'535}));
  return address;
}

HttpServer::HttpServer(const HttpAddress& address, HttpPages pages)
    : impl_{std::make_unique<Impl>(address, std::move(pages))} {}

HttpServer::~HttpServer() = default;

std::string HttpServer::url() const {
  return impl_->url();
}

HttpResponse metrics_page(std::string text) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = std::move(text)};
}

HttpResponse readiness(const std::vector<std::string>& why_not) {
  if (why_not.empty()) return {.body = "ready\n"};
  HttpResponse response{.status = 503};
  for (const std::string& reason : why_not) response.body += reason + "\n";
  return response;
}

std::optional<HttpResponse> other_page(std::string_view path) {
  if (path == "/metrics" || path == "/readyz") return std::nullopt;
  if (path == "/healthz") return HttpResponse{.body = "ok\n"};
  return HttpResponse{.status = 404, .body = "there are /metrics, /healthz and /readyz\n"};
}

}  // namespace stela::tool
