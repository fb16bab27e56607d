package protocol

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// appendLine appends v as JSON and a newline. A *Response with an answer that is given
// for each message is written here by hand: encoding/json, which finds its way through
// their types and their own ways of writing themselves and then checks what came of
// it, took three to six times as long. Everything else it writes itself.
func appendLine(dst []byte, v any) ([]byte, error) {
	start := len(dst)
	if r, ok := v.(*Response); ok {
		if dst, ok = r.append(dst); ok {
			return append(dst, '\n'), nil
		}
	}
	w := appending{dst[:start]}
	js := json.NewEncoder(&w)
	js.SetEscapeHTML(false)
	err := js.Encode(v)
	return w.b, err
}

// appending is a writer to the end of a slice.
type appending struct{ b []byte }

func (a *appending) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}

// append is false for results of other types, and for what cannot be written.
func (r *Response) append(dst []byte) ([]byte, bool) {
	dst = append(dst, `{"jsonrpc":`...)
	dst = AppendString(dst, r.JSONRPC)
	dst = append(dst, `,"id":`...)
	if r.ID == "" {
		dst = append(dst, Null...)
	}
	dst = append(dst, r.ID...)
	ok := true
	if r.Result != nil {
		dst = append(dst, `,"result":`...)
		dst, ok = appendResult(dst, r.Result)
	}
	if r.Error != nil {
		dst = append(dst, `,"error":`...)
		dst = r.Error.append(dst)
	}
	return append(dst, '}'), ok
}

func appendResult(dst []byte, result any) ([]byte, bool) {
	ok := true
	switch r := result.(type) {
	case Empty:
		return append(dst, `{}`...), true
	case ClaimResult:
		dst = append(dst, `{"messages":`...)
		dst, ok = appendDeliveries(dst, r.Messages)
	case CompleteResult:
		dst = append(dst, `{"state":`...)
		dst = AppendString(dst, string(r.State))
		if r.Messages != nil {
			dst = append(dst, `,"messages":`...)
			dst, ok = appendDeliveries(dst, r.Messages)
		}
		if r.NextError != nil {
			dst = append(dst, `,"next_error":`...)
			dst = r.NextError.append(dst)
		}
	case FailResult:
		dst = append(dst, `{"state":`...)
		dst = AppendString(dst, string(r.State))
		dst = append(dst, `,"attempts":`...)
		dst = strconv.AppendInt(dst, int64(r.Attempts), 10)
	case ReleaseResult:
		dst = append(dst, `{"state":`...)
		dst = AppendString(dst, string(r.State))
	case RenewResult:
		var err error
		dst = append(dst, `{"expires_at":"`...)
		dst, err = r.ExpiresAt.AppendText(dst)
		ok = err == nil
		dst = append(dst, `","remaining_ms":`...)
		dst = strconv.AppendInt(dst, r.RemainingMS, 10)
	case SendResult:
		dst = append(dst, `{"id":`...)
		dst = AppendString(dst, r.ID)
		if r.Duplicate {
			dst = append(dst, `,"duplicate":true`...)
		}
		if r.Recipient != "" {
			dst = append(dst, `,"recipient":`...)
			dst = AppendString(dst, r.Recipient)
		}
	default:
		return dst, false
	}
	return append(dst, '}'), ok
}

func appendDeliveries(dst []byte, list []Delivery) ([]byte, bool) {
	if list == nil {
		return append(dst, Null...), true
	}
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		var ok bool
		if dst, ok = list[i].append(dst); !ok {
			return dst, false
		}
	}
	return append(dst, ']'), true
}

func (d *Delivery) append(dst []byte) ([]byte, bool) {
	dst = append(dst, `{"id":`...)
	dst = AppendString(dst, d.ID)
	dst = append(dst, `,"from":`...)
	dst = AppendString(dst, d.From)
	dst = append(dst, `,"subject":`...)
	dst = AppendString(dst, d.Subject)
	dst = append(dst, `,"headers":`...)
	dst = appendTexts(dst, d.Headers)
	dst = append(dst, `,"body":`...)
	dst = d.Body.append(dst)
	dst = append(dst, `,"attempt":`...)
	dst = strconv.AppendInt(dst, int64(d.Attempt), 10)
	dst = append(dst, `,"token":`...)
	dst = strconv.AppendUint(dst, uint64(d.Token), 10)
	dst = append(dst, `,"expires_at":"`...)
	dst, err := d.ExpiresAt.AppendText(dst)
	dst = append(dst, `","remaining_ms":`...)
	dst = strconv.AppendInt(dst, d.RemainingMS, 10)
	return append(dst, '}'), err == nil
}

// appendTexts writes the members in the order of their names.
func appendTexts(dst []byte, m map[string]string) []byte {
	switch len(m) {
	case 0:
		if m == nil {
			return append(dst, Null...)
		}
		return append(dst, `{}`...)
	case 1:
		for name, text := range m {
			dst = appendText(append(dst, '{'), name, text)
		}
	default:
		before := byte('{')
		for _, name := range slices.Sorted(maps.Keys(m)) {
			dst = appendText(append(dst, before), name, m[name])
			before = ','
		}
	}
	return append(dst, '}')
}

func appendText(dst []byte, name, text string) []byte {
	dst = AppendString(dst, name)
	dst = append(dst, ':')
	return AppendString(dst, text)
}

func (e *Error) append(dst []byte) []byte {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, e.Message)
	dst = append(dst, `,"data":{"category":`...)
	dst = AppendString(dst, string(e.Data.Category))
	dst = append(dst, `,"why":`...)
	dst = AppendString(dst, e.Data.Why)
	dst = append(dst, `,"next":`...)
	dst = AppendString(dst, e.Data.Next)
	dst = append(dst, `,"retryable":`...)
	dst = strconv.AppendBool(dst, e.Data.Retryable)
	for i, p := range e.Data.Problems {
		lead := `,{"path":`
		if i == 0 {
			lead = `,"problems":[{"path":`
		}
		dst = append(dst, lead...)
		dst = AppendString(dst, p.Path)
		dst = append(dst, `,"line":`...)
		dst = strconv.AppendInt(dst, int64(p.Line), 10)
		dst = append(dst, `,"column":`...)
		dst = strconv.AppendInt(dst, int64(p.Column), 10)
		dst = append(dst, `,"message":`...)
		dst = AppendString(dst, p.Message)
		dst = append(dst, '}')
	}
	if len(e.Data.Problems) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, `}}`...)
}
