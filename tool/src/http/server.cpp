// Boost 1.74's Asio needs it first.
#include <utility>

#include "cli/arguments.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "http/server.hpp"
#include "http/socket_file.hpp"

#define BOOST_ERROR_CODE_HEADER_ONLY 1
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
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
using Stream = asio::generic::stream_protocol;
using boost::system::error_code;

/// The limit for sending a request, and for taking its answer.
constexpr std::chrono::seconds slowest_client{5};
/// The limit between two requests of a connection.
constexpr std::chrono::seconds longest_pause{30};
/// The pause before accepting again after a connection couldn't be opened.
constexpr std::chrono::milliseconds accept_pause{100};
/// An answer gets another second per this many bytes.
constexpr std::size_t slowest_line = 100'000;
constexpr std::size_t longest_head = std::size_t{8} * 1024;
/// How much of the rest is read after a request was refused: otherwise the client would lose the
/// answer.
constexpr std::size_t longest_rest = std::size_t{256} * 1024;

/// An exception from the page becomes its answer.
template <class Page>
auto page_or_failure(const Page& page, const HttpRequest& request) -> decltype(page(request)) {
  try {
    return page(request);
  } catch (const std::exception& e) {
    return HttpResponse{.status = 500, .body = in_one_line(e.what()) + "\n"};
  }
}

std::string in_http(const HttpResponse& response, bool with_body, bool stays_open) {
  const auto reason = http::obsolete_reason(static_cast<http::status>(response.status));
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + ' ';
  text.append(reason.data(), reason.size());
  text += "\r\nContent-Type: " + response.content_type;
  text += "\r\nCache-Control: no-store\r\nConnection: ";
  text += stays_open ? "keep-alive" : "close";
  for (const auto& [name, value] : response.fields) text += "\r\n" + name + ": " + value;
  text += "\r\nContent-Length: " + std::to_string(response.body.size()) + "\r\n\r\n";
  return with_body ? std::move(text) + response.body : text;
}

/// A line that other programs would parse differently: it has no CR, or continues the previous one.
bool is_ambiguous(std::string_view head) {
  for (std::size_t at = head.find('\n'); at != std::string_view::npos;
       at = head.find('\n', at + 1)) {
    if (at == 0 || head[at - 1] != '\r') return true;
    if (at + 1 < head.size() && (head[at + 1] == ' ' || head[at + 1] == '\t')) return true;
  }
  return false;
}

/// A request without its body.
struct HttpHead {
  HttpRequest request;
  std::size_t body = 0;
  bool stays_open = false;
  /// The status that refuses it; 0: it is accepted.
  unsigned refusal = 0;

  static HttpHead refused(unsigned status) {
    HttpHead head;
    head.refusal = status;
    return head;
  }
};

/// How often it gives the length of its body, also as a list of equal numbers.
std::ptrdiff_t count_lengths(const HttpRequest& request) {
  std::ptrdiff_t lengths = 0;
  for (const auto& [name, value] : request.fields) {
    if (name == "content-length") lengths += 1 + std::count(value.begin(), value.end(), ',');
  }
  return lengths;
}

/// The status that refuses the announced body; 0: it is accepted.
unsigned refusal_of(const HttpRequest& request, bool is_chunked, std::size_t length,
                    std::size_t most) {
  const bool is_post = request.method == "POST";
  if (request.method != "GET" && request.method != "HEAD" && !(is_post && most > 0)) return 405;
  if (is_chunked || request.has("transfer-encoding")) return 411;
  const auto lengths = count_lengths(request);
  if (lengths > 1) return 400;
  if (is_post && lengths == 0) return 411;
  if (!is_post && length > 0) return 400;
  return length > most ? 413 : 0;
}

HttpHead parse_head(std::string_view text, std::size_t most) {
  if (is_ambiguous(text)) return HttpHead::refused(400);
  http::request_parser<http::empty_body> parser;
  parser.header_limit(longest_head);
  parser.body_limit(std::uint64_t{1} << 40U);
  error_code error;
  parser.put(asio::buffer(text.data(), text.size()), error);
  if (!parser.is_header_done()) return HttpHead::refused(400);
  const auto& message = parser.get();
  HttpHead head;
  HttpRequest& request = head.request;
  request.method.assign(message.method_string().data(), message.method_string().size());
  request.path.assign(message.target().data(), message.target().size());
  if (const std::size_t mark = request.path.find('?'); mark != std::string::npos) {
    request.query = request.path.substr(mark + 1);
    request.path.resize(mark);
  }
  for (const auto& field : message) {
    std::string name{field.name_string().data(), field.name_string().size()};
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    request.fields.emplace_back(std::move(name),
                                std::string{field.value().data(), field.value().size()});
  }
  const auto length = parser.content_length();
  head.refusal = refusal_of(request, parser.chunked(), length ? *length : 0, most);
  head.body = head.refusal == 0 && length ? *length : 0;
  head.stays_open = head.refusal == 0 && parser.keep_alive();
  return head;
}

class HttpConnection;

/// A lane's slow pages, and the threads that make them.
struct HttpLane {
  int waiting = 0;
  asio::io_context makers;
  asio::executor_work_guard<asio::io_context::executor_type> keeps_making{makers.get_executor()};
  std::vector<std::jthread> threads = {};
};

/// The state that all connections share.
struct HttpShared {
  HttpPages pages;
  HttpLimits limits;
  std::uint16_t port = 0;
  int open = 0;
  /// Connections that haven't sent a complete request, oldest first.
  std::vector<HttpConnection*> asking;
  asio::io_context clients{1};
  std::vector<std::unique_ptr<HttpLane>> lanes;
};

/// One connection: requests and their answers, one after the other. The clients' thread does
/// everything except making slow pages.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(Stream::socket socket, HttpShared& shared)
      : socket_{std::move(socket)}, limit_{shared.clients}, shared_{shared} {
    ++shared_.open;
  }
  ~HttpConnection() {
    std::erase(shared_.asking, this);
    --shared_.open;
  }

  void run() {
    shared_.asking.push_back(this);
    limit_time(answered_ == 0 || !received_.empty() ? slowest_client : longest_pause);
    take();
  }

  /// Ends a connection that hasn't sent a complete request.
  void make_room() {
    std::erase(shared_.asking, this);
    end();
  }

 private:
  void end() {
    error_code ignored;
    socket_.close(ignored);
  }

  void limit_time(std::chrono::seconds most) {
    limit_.expires_after(most);
    limit_.async_wait([self = weak_from_this()](const error_code& error) {
      const auto alive = self.lock();
      if (!error && alive) alive->end();
    });
  }

  void read() {
    socket_.async_read_some(asio::buffer(piece_),
                            [self = shared_from_this()](const error_code& error, std::size_t size) {
                              if (error) return self->refuse_half();
                              if (self->received_.empty()) self->limit_time(slowest_client);
                              self->received_.append(self->piece_.data(), size);
                              self->take();
                            });
  }

  /// The client has closed before sending a complete request.
  void refuse_half() {
    if (head_ || received_.empty()) return;
    head_ = HttpHead::refused(400);
    respond();
  }

  void take() {
    if (!head_) {
      constexpr std::string_view blank_line = "\r\n\r\n";
      const std::size_t end = received_.find(blank_line);
      const std::size_t size = end + blank_line.size();
      if (end == std::string::npos && received_.size() < longest_head) return read();
      if (end == std::string::npos || size > longest_head) {
        head_ = HttpHead::refused(431);
      } else {
        head_ = parse_head(std::string_view{received_}.substr(0, size), shared_.limits.body);
        received_.erase(0, size);
      }
    }
    if (received_.size() < head_->body) return read();
    head_->request.port = shared_.port;
    head_->request.body = received_.substr(0, head_->body);
    received_.erase(0, head_->body);
    respond();
  }

  void respond() {
    std::erase(shared_.asking, this);
    // The page may take any time.
    limit_.cancel();
    if (head_->refusal != 0) return send(refusal());
    if (auto page = page_or_failure(shared_.pages.at_once, head_->request)) {
      return send(*page);
    }
    HttpLane& lane = *shared_.lanes[shared_.pages.lane ? shared_.pages.lane(head_->request) : 0];
    if (lane.waiting == shared_.limits.waiting) {
      return send({.status = 503, .body = "too many requests wait for their pages\n"});
    }
    ++lane.waiting;
    asio::post(lane.makers,
               [self = shared_from_this(), &lane]() mutable { make(std::move(self), lane); });
  }

  HttpResponse refusal() const {
    HttpResponse response{.status = head_->refusal};
    if (response.status == 405) {
      response.body = shared_.limits.body > 0 ? "only GET, HEAD and POST\n" : "only GET and HEAD\n";
    } else if (response.status == 413) {
      response.body = "at most " + std::to_string(shared_.limits.body) + " bytes\n";
    } else if (response.status == 431) {
      response.body =
          "the head of a request has at most " + std::to_string(longest_head) + " bytes\n";
    } else if (head_->request.method.empty()) {
      response.body = "this is no request of HTTP/1.1\n";
    } else {
      response.body = "a body has a Content-Length, and belongs to a POST\n";
    }
    return response;
  }

  static void make(std::shared_ptr<HttpConnection> self, HttpLane& lane) {
    HttpShared& shared = self->shared_;
    HttpResponse page = page_or_failure(shared.pages.in_time, self->head_->request);
    asio::post(shared.clients, [self = std::move(self), page = std::move(page), &lane]() mutable {
      --lane.waiting;
      self->send(page);
    });
  }

  void send(const HttpResponse& response) {
    const bool stays_open = head_->stays_open && ++answered_ < shared_.limits.requests;
    answer_ = in_http(response, head_->request.method != "HEAD", stays_open);
    head_.reset();
    limit_time(slowest_client + std::chrono::seconds{answer_.size() / slowest_line});
    asio::async_write(
        socket_, asio::buffer(answer_),
        [self = shared_from_this(), stays_open](const error_code& error, std::size_t) {
          if (!error && stays_open) return self->run();
          error_code ignored;
          self->socket_.shutdown(Stream::socket::shutdown_send, ignored);
          self->shared_.asking.push_back(self.get());
          if (!error) self->pass_over(longest_rest);
        });
  }

  /// Reads and discards at most this many bytes, until the client closes too.
  void pass_over(std::size_t most) {
    if (most == 0) return;
    socket_.async_read_some(asio::buffer(piece_), [self = shared_from_this(), most](
                                                      const error_code& error, std::size_t size) {
      if (!error) self->pass_over(most - std::min(size, most));
    });
  }

  Stream::socket socket_;
  asio::steady_timer limit_;
  std::array<char, 4096> piece_;
  std::string received_;
  std::optional<HttpHead> head_;
  std::string answer_;
  int answered_ = 0;
  HttpShared& shared_;
};

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpAddress& address, HttpPages pages, const HttpLimits& limits) {
    shared_.pages = std::move(pages);
    shared_.limits = limits;
    if (address.socket_file.empty()) {
      listen(address);
    } else {
      file_.emplace(address.socket_file, address.socket_mode);
      acceptor_.assign(Stream{AF_UNIX, 0}, file_->release());
      url_ = "unix:" + address.socket_file;
    }
    accept();
    for (std::size_t i = 0; i < limits.lanes; ++i) {
      HttpLane& lane = *shared_.lanes.emplace_back(std::make_unique<HttpLane>());
      for (int maker = 0; maker < limits.makers; ++maker) {
        lane.threads.emplace_back([&lane] { lane.makers.run(); });
      }
    }
    answering_ = std::jthread{[this] { shared_.clients.run(); }};
  }

  ~Impl() {
    shared_.clients.stop();
    for (const auto& lane : shared_.lanes) lane->makers.stop();
    for (const auto& lane : shared_.lanes) lane->threads.clear();
  }

  const std::string& url() const noexcept { return url_; }
  std::uint16_t port() const noexcept { return shared_.port; }

 private:
  void listen(const HttpAddress& address) {
    const std::string where = address.host + ":" + std::to_string(address.port);
    error_code error;
    const auto host = asio::ip::make_address(address.host, error);
    if (error) throw Misuse{"'" + in_one_line(address.host) + "' isn't an IP address"};
    tcp::acceptor acceptor{shared_.clients};
    tcp::endpoint endpoint{host, address.port};
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address{true}, error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error) throw Exit{failed, "can't listen on " + where + ": " + error.message()};
    endpoint = acceptor.local_endpoint();
    shared_.port = endpoint.port();
    const std::string shown = host.to_string();
    url_ =
        "http://" + (host.is_v6() ? "[" + shown + "]" : shown) + ":" + std::to_string(shared_.port);
    acceptor_.assign(Stream{endpoint.protocol()}, acceptor.release());
  }

  void accept() {
    acceptor_.async_accept([this](const error_code& error, Stream::socket socket) {
      if (error) return accept_later();
      const bool is_full = shared_.open >= shared_.limits.connections;
      const bool makes_room = is_full && !shared_.asking.empty();
      if (makes_room) shared_.asking.front()->make_room();
      if (!is_full || makes_room) {
        std::make_shared<HttpConnection>(std::move(socket), shared_)->run();
      }
      accept();
    });
  }

  /// A lack of file descriptors would make an immediate accept fail again.
  void accept_later() {
    pause_.expires_after(accept_pause);
    pause_.async_wait([this](const error_code&) { accept(); });
  }

  HttpShared shared_;
  std::optional<SocketFile> file_;
  asio::basic_socket_acceptor<Stream> acceptor_{shared_.clients};
  std::string url_;
  asio::steady_timer pause_{shared_.clients};
  std::jthread answering_;
};

HttpAddress parse_address(std::string_view text, std::string_view what) {
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
  address.port = static_cast<std::uint16_t>(to_integer(text, what, {0, 65'535}));
  return address;
}

HttpServer::HttpServer(const HttpAddress& address, HttpPages pages, const HttpLimits& limits)
    : impl_{std::make_unique<Impl>(address, std::move(pages), limits)} {}

HttpServer::~HttpServer() = default;

std::string HttpServer::url() const {
  return impl_->url();
}

std::uint16_t HttpServer::port() const {
  return impl_->port();
}

}  // namespace stela::tool
