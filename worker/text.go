package worker

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sovereign-run/sovereign/refusal"
)

// checkText refuses params with a string that is not UTF-8: written as JSON it would be
// another one, and two keys that differ could become one, the second message be lost. A
// reason and a progress are for people, and go out whatever they hold. Bodies and results
// are bytes, and not looked at.
func checkText(method string, params any) error {
	if what, text := notText("", reflect.ValueOf(params)); what != "" {
		return refusal.New(refusal.BadRequest, "write the request "+method+": "+what+" is not UTF-8",
			"it is "+strconv.QuoteToASCII(text), "give it as text, or encode it, say with base64")
	}
	return nil
}

// notText finds the first string of v that is no text, and says what it is; name is the
// member that v is the value of.
func notText(name string, v reflect.Value) (what, text string) {
	switch v.Kind() {
	case reflect.Pointer:
		return notText(name, v.Elem())
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return name, v.String()
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if !field.IsExported() {
				continue
			}
			inner, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if inner == "reason" || inner == "progress" {
				continue
			}
			if what, text = notText(inner, value); what != "" {
				return what, text
			}
		}
	case reflect.Map:
		for k, value := range v.Seq2() {
			if !utf8.ValidString(k.String()) {
				return "a name of " + name, k.String()
			}
			if what, text = notText(name+" "+k.String(), value); what != "" {
				return what, text
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return "", ""
		}
		for i := range v.Len() {
			if what, text = notText(name, v.Index(i)); what != "" {
				return fmt.Sprintf("%s (number %d of %s)", what, i+1, name), text
			}
		}
	}
	return "", ""
}
